package main

import (
	"encoding/csv"
	"os"
	"path/filepath"
	"strconv"
	"strings"
)

// writeCSV writes figures.csv, a line for each figure with the values of its rounds, and distributions.csv, from which the
// curves can be drawn again.
func (b *bench) writeCSV() error {
	figures := [][]string{{"suite", "disk", "contender", "load", "metric", "unit", "value", "rounds"}}
	for _, f := range b.figures {
		var rounds []string
		for _, v := range f.rounds {
			rounds = append(rounds, format(v))
		}
		figures = append(figures, []string{f.suite, f.disk, f.contender, f.load, f.metric, f.unit, format(f.value), strings.Join(rounds, " ")})
	}
	if err := writeLines(filepath.Join(b.opts.out, "figures.csv"), figures); err != nil {
		return err
	}
	distributions := [][]string{{"suite", "contender", "load", "percentile", "ms"}}
	for _, c := range b.curves {
		for _, p := range percentiles {
			distributions = append(distributions, []string{c.suite, c.contender, c.load, format(p), format(percentile(c.samples, p))})
		}
	}
	return writeLines(filepath.Join(b.opts.out, "distributions.csv"), distributions)
}

// percentiles at which a distribution is written and drawn: each whole one, and more towards the end.
var percentiles = func() []float64 {
	var all []float64
	for p := 1; p < 99; p++ {
		all = append(all, float64(p))
	}
	return append(all, 99, 99.5, 99.9, 100)
}()

func format(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }

func writeLines(path string, lines [][]string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	w := csv.NewWriter(file)
	if err := w.WriteAll(lines); err != nil {
		return err
	}
	return file.Close()
}
