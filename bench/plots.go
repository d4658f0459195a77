package main

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// plots draws what the run has measured.
func (b *bench) plots() error {
	for _, draw := range []func() error{b.plotDistributions, b.plotThroughput, b.plotWriters, b.plotGrowth, b.plotSnapshot, b.plotRelays} {
		if err := draw(); err != nil {
			return err
		}
	}
	return nil
}

// plotDistributions draws for each load of the latency suites which share of the messages had reached its handler after a
// time, on a logarithmic scale.
func (b *bench) plotDistributions() error {
	for _, suite := range []struct{ name, title, x string }{
		{"latency", "Commit to handler at %s", "milliseconds from COMMIT to handler (logarithmic)"},
		{"lateness", "Scheduled messages, %s", "milliseconds after the due time (logarithmic)"},
	} {
		var loads []string
		for _, c := range b.curves {
			if c.suite == suite.name && !slices.Contains(loads, c.load) {
				loads = append(loads, c.load)
			}
		}
		for _, load := range loads {
			p := newPlot(fmt.Sprintf(suite.title, load), suite.x, "% of the messages")
			p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, decades{}
			p.Y.Min, p.Y.Max = 0, 100
			p.Legend.Left, p.Legend.Top = false, false
			for i, c := range b.curves {
				if c.suite != suite.name || c.load != load {
					continue
				}
				var points plotter.XYs
				for _, percent := range percentiles {
					points = append(points, plotter.XY{X: max(percentile(c.samples, percent), 0.01), Y: percent})
				}
				if err := addLine(p, c.contender, points, colorOf(c.contender, i), false); err != nil {
					return err
				}
			}
			name := suite.name + "-" + strings.TrimSuffix(load, "/s")
			if err := b.save(p, suite.name, name); err != nil {
				return err
			}
		}
	}
	return nil
}

// decades marks 1, 2 and 5 of each power of ten.
type decades struct{}

func (decades) Ticks(low, high float64) []plot.Tick {
	var ticks []plot.Tick
	for power := 0.01; power <= high; power *= 10 {
		for _, m := range []float64{1, 2, 5} {
			if v := power * m; v >= low && v <= high {
				ticks = append(ticks, plot.Tick{Value: v, Label: strconv.FormatFloat(v, 'g', 3, 64)})
			}
		}
	}
	return ticks
}

// thousands writes an axis from zero with commas.
type thousands struct{}

func (thousands) Ticks(low, high float64) []plot.Tick {
	ticks := plot.DefaultTicks{}.Ticks(low, high)
	for i := range ticks {
		if ticks[i].Label != "" {
			ticks[i].Label = strings.TrimSuffix(strings.TrimSuffix(number(ticks[i].Value, true), ".00"), ".0")
		}
	}
	return ticks
}

// plotThroughput draws a bar for each contender, the fastest on top.
func (b *bench) plotThroughput() error {
	var figures []figure
	for _, f := range b.figures {
		if f.suite == "throughput" && f.load == noWork.name {
			figures = append(figures, f)
		}
	}
	if len(figures) == 0 {
		return nil
	}
	slices.SortStableFunc(figures, func(a, b figure) int {
		if a.value < b.value {
			return -1
		}
		return 1
	})
	p := newPlot("A backlog, sent by senders that do nothing", "messages a second, sent and recorded", "")
	var names []string
	for i, f := range figures {
		bar, err := plotter.NewBarChart(plotter.Values{f.value}, vg.Points(18))
		if err != nil {
			return err
		}
		bar.Horizontal, bar.XMin, bar.Color = true, float64(i), colorOf(f.contender, i)
		bar.LineStyle.Width = 0
		p.Add(bar)
		label, err := plotter.NewLabels(plotter.XYLabels{XYs: plotter.XYs{{X: f.value, Y: float64(i)}}, Labels: []string{" " + number(f.value, true)}})
		if err != nil {
			return err
		}
		label.TextStyle[0].Font.Variant, label.TextStyle[0].YAlign = "Sans", draw.YCenter
		p.Add(label)
		names = append(names, f.contender)
	}
	p.NominalY(names...)
	p.X.Min, p.X.Max, p.X.Tick.Marker = 0, figures[len(figures)-1].value*1.12, thousands{}
	return b.save(p, "throughput", "throughput")
}

// plotWriters draws the commits a second over the number of writers.
func (b *bench) plotWriters() error {
	for _, suite := range []struct{ name, file, title string }{
		{"writers", "writers", "Writers while a relay drains, %s disk"},
		{"writers alone", "writers-alone", "Writers while no relay is awake, %s disk"},
	} {
		for _, disk := range []string{"plain", "slow"} {
			lines := b.lines(func(f figure) bool { return f.suite == suite.name && f.disk == disk && f.metric == "commits" })
			p := newPlot(fmt.Sprintf(suite.title, disk), "writers", "commits a second")
			if err := b.plotLines(p, lines, suite.name, suite.file+"-"+disk, func(load string) string { return strings.TrimSuffix(load, " writers") }); err != nil {
				return err
			}
		}
	}
	return nil
}

// plotGrowth draws claims and latencies over the states of the table.
func (b *bench) plotGrowth() error {
	var lines []line
	for _, metric := range []string{"claim", "claim on an empty table", "p50"} {
		for _, l := range b.lines(func(f figure) bool { return f.suite == "growth" && f.metric == metric }) {
			l.name = map[string]string{"claim": "claim of 20 rows", "p50": "commit to handler, median"}[metric]
			if l.name == "" {
				l.name = metric + " at the same time"
			}
			lines = append(lines, l)
		}
	}
	p := newPlot("A table that has grown", "rows in the table", "milliseconds")
	return b.plotLines(p, lines, "growth", "growth", func(load string) string { return strings.ReplaceAll(load, ", ", "\n") })
}

func (b *bench) plotRelays() error {
	lines := b.lines(func(f figure) bool { return f.suite == "relays" && f.metric == "rate" })
	p := newPlot("Several relays drain one table", "relays", "messages a second")
	return b.plotLines(p, lines, "relays", "relays", func(load string) string { return strings.TrimSuffix(load, " relays") })
}

// line is a contender's figures by load.
type line struct {
	name   string
	loads  []string
	values []float64
}

func (b *bench) lines(of func(figure) bool) []line {
	var lines []line
	for _, f := range b.figures {
		if !of(f) {
			continue
		}
		i := slices.IndexFunc(lines, func(l line) bool { return l.name == f.contender })
		if i < 0 {
			lines = append(lines, line{name: f.contender})
			i = len(lines) - 1
		}
		lines[i].loads, lines[i].values = append(lines[i].loads, f.load), append(lines[i].values, f.value)
	}
	return lines
}

// plotLines draws lines over the loads, evenly spaced, from zero upwards.
func (b *bench) plotLines(p *plot.Plot, lines []line, suite, name string, label func(load string) string) error {
	if len(lines) == 0 || len(lines[0].loads) < 2 {
		return nil
	}
	var highest float64
	for i, l := range lines {
		var points plotter.XYs
		for x, v := range l.values {
			points = append(points, plotter.XY{X: float64(x), Y: v})
			highest = max(highest, v)
		}
		if err := addLine(p, l.name, points, colorOf(l.name, i), true); err != nil {
			return err
		}
	}
	var labels []string
	for _, load := range lines[0].loads {
		labels = append(labels, label(load))
	}
	p.NominalX(labels...)
	p.X.Min, p.X.Max = -0.3, float64(len(labels))-0.7
	p.Y.Min, p.Y.Max, p.Y.Tick.Marker = 0, highest*1.3, thousands{} // room for the legend
	p.Legend.Top, p.Legend.Left = true, true
	return b.save(p, suite, name)
}

// plotSnapshot draws the throughput over the messages sent, with the moment at which the snapshot was opened at zero.
func (b *bench) plotSnapshot() error {
	lines := b.lines(func(f figure) bool { return f.suite == "snapshot" })
	if len(lines) == 0 {
		return nil
	}
	p := newPlot("Throughput while another session holds a snapshot open", "messages sent since the snapshot was opened", "messages a second")
	var highest float64
	for i, l := range lines {
		var points plotter.XYs
		for x, v := range l.values {
			points = append(points, plotter.XY{X: float64((x - chunksBefore) * b.chunk), Y: v})
			highest = max(highest, v)
		}
		if err := addLine(p, l.name, points, colorOf(l.name, i), true); err != nil {
			return err
		}
	}
	p.Y.Min, p.Y.Max = 0, highest*1.2
	p.X.Min, p.X.Max = -float64(chunksBefore*b.chunk), float64((len(lines[0].values)-chunksBefore)*b.chunk)
	p.X.Tick.Marker, p.Y.Tick.Marker = thousands{}, thousands{}
	p.Legend.Top = true
	return b.save(p, "snapshot", "snapshot")
}
