package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"
)

// table is a grid of texts with a title.
type table struct {
	title  string
	header []string
	rows   [][]string
}

// titles of the suites' tables, in the order of the page.
var titles = []struct{ suite, title string }{
	{"latency", "Latency from commit to handler"},
	{"lateness", "Lateness of scheduled messages"},
	{"throughput", "Throughput of a backlog, by what a send takes"},
	{"writers", "Commits a second while a relay drains, one insert for each transaction"},
	{"writers alone", "Commits a second while no relay is awake, a business row and a message for each transaction"},
	{"relays", "Several relays on one table"},
	{"idle relays", "What idle relays ask of the database, one insert a second"},
	{"growth", "A claim of 20 rows, and the latency at 30/s, in tables that have grown"},
	{"snapshot", "Throughput while another session holds an old snapshot, by the messages sent since it was opened"},
	{"memory", "A relay that is a process of its own"},
	{"senders", "Throughput of a backlog by the real senders, to a provider on this host"},
}

// tables makes those of a suite, one for each disk: a row for each contender, a column for each load and metric. With few
// contenders and many columns it is turned round.
func (b *bench) tables(suite, title string) []table {
	var disks []string
	for _, f := range b.figures {
		if f.suite == suite && !slices.Contains(disks, f.disk) {
			disks = append(disks, f.disk)
		}
	}
	var all []table
	for _, disk := range disks {
		t := b.pivot(suite, disk)
		t.title = title
		if len(disks) > 1 {
			t.title += ", " + disk + " disk"
		}
		all = append(all, t)
	}
	return all
}

func (b *bench) pivot(suite, disk string) table {
	type column struct{ load, metric, unit string }
	var contenders []string
	var columns []column
	cells := map[string]map[column]float64{}
	for _, f := range b.figures {
		if f.suite != suite || f.disk != disk {
			continue
		}
		c := column{f.load, f.metric, f.unit}
		if !slices.Contains(columns, c) {
			columns = append(columns, c)
		}
		if cells[f.contender] == nil {
			contenders = append(contenders, f.contender)
			cells[f.contender] = map[column]float64{}
		}
		cells[f.contender][c] = f.value
	}
	t := table{header: []string{""}}
	for _, c := range columns {
		t.header = append(t.header, strings.TrimSpace(fmt.Sprintf("%s %s, %s", c.load, c.metric, c.unit)))
	}
	for _, name := range contenders {
		row := []string{name}
		for _, c := range columns {
			value, ok := cells[name][c]
			row = append(row, number(value, ok))
		}
		t.rows = append(t.rows, row)
	}
	if len(columns) > 9 || len(columns) > 2*len(contenders)+3 {
		return t.turned()
	}
	return t
}

func (t table) turned() table {
	all := append([][]string{t.header}, t.rows...)
	turned := table{title: t.title}
	for c := range t.header {
		var row []string
		for _, line := range all {
			row = append(row, line[c])
		}
		turned.rows = append(turned.rows, row)
	}
	turned.header, turned.rows = turned.rows[0], turned.rows[1:]
	return turned
}

// number writes three digits that count, and thousands with commas.
func number(v float64, ok bool) string {
	switch {
	case !ok || math.IsNaN(v):
		return "-"
	case v == 0:
		return "0"
	case math.Abs(v) < 10:
		return strconv.FormatFloat(v, 'f', 2, 64)
	case math.Abs(v) < 100:
		return strconv.FormatFloat(v, 'f', 1, 64)
	}
	s := strconv.FormatFloat(v, 'f', 0, 64)
	for i := len(s) - 3; i > 0; i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}

// print writes the table for a terminal.
func (t table) print(w io.Writer) {
	widths := make([]int, len(t.header))
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			widths[i] = max(widths[i], utf8.RuneCountInString(cell))
		}
	}
	fmt.Fprintf(w, "\n%s\n", t.title)
	for _, row := range append([][]string{t.header}, t.rows...) {
		for i, cell := range row {
			space := strings.Repeat(" ", widths[i]-utf8.RuneCountInString(cell))
			if i == 0 {
				fmt.Fprintf(w, "  %s%s", cell, space)
			} else {
				fmt.Fprintf(w, "  %s%s", space, cell)
			}
		}
		fmt.Fprintln(w)
	}
}

// markdown writes the table for the page.
func (t table) markdown(w io.Writer) {
	fmt.Fprintf(w, "| %s |\n|---|%s\n", strings.Join(t.header, " | "), strings.Repeat("---:|", len(t.header)-1))
	for _, row := range t.rows {
		fmt.Fprintf(w, "| %s |\n", strings.Join(row, " | "))
	}
}

// printTables writes the tables of suites that have figures and have not been written yet.
func (b *bench) printTables() {
	for _, t := range titles {
		if b.printed[t.suite] {
			continue
		}
		for _, table := range b.tables(t.suite, t.title) {
			table.print(b.out)
			b.printed[t.suite] = true
		}
	}
}
