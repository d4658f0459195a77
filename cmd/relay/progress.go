package main

import (
	"fmt"
	"io"
	"strings"
)

// progress draws how far long work is, on one line of a terminal. Nil draws nothing.
type progress struct {
	w     io.Writer
	what  string
	total int // 0: unknown
}

// progress is for work of this command: nil unless standard error is a terminal.
func (a *app) progress(what string, total int) *progress {
	if !isTerminal(a.stderr) {
		return nil
	}
	return &progress{a.stderr, what, total}
}

const barWidth = 30

func (p *progress) draw(done int) {
	if p == nil {
		return
	}
	if p.total <= 0 {
		fmt.Fprintf(p.w, "\r%s %d", p.what, done)
		return
	}
	full := min(barWidth, barWidth*done/p.total)
	fmt.Fprintf(p.w, "\r%s [%s%s] %d of %d", p.what, strings.Repeat("#", full), strings.Repeat(" ", barWidth-full), done, p.total)
}

// end leaves a clean line.
func (p *progress) end() {
	if p != nil {
		fmt.Fprint(p.w, "\r\x1b[K")
	}
}
