package main

import (
	"fmt"
	"image/color"
	"io"
	"os"
	"path/filepath"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/font"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/vg"
	"gonum.org/v1/plot/vg/draw"
)

// image is a plot that was written, for the page.
type image struct{ suite, name, title string }

// colors are the same in every plot. They can be told apart by those who do not see red and green as different (Okabe and
// Ito's set).
var colors = map[string]color.Color{
	"ours":                     rgb(0x0072b2),
	"ours, tuned":              rgb(0x0072b2),
	"ours, no watch lock":      rgb(0x56b4e9),
	"raw floor":                rgb(0x707070),
	"two statements alone":     rgb(0x707070),
	"no outbox":                rgb(0x707070),
	"River, default":           rgb(0xe69f00),
	"River, tuned":             rgb(0xd55e00),
	"River InsertTx":           rgb(0xd55e00),
	"River, 1 ms poll":         rgb(0x8c2d04),
	"NOTIFY trigger":           rgb(0xcc79a7),
	"no trigger, poll 10 ms":   rgb(0x009e73),
	"plain insert":             rgb(0x009e73),
	"poll 100ms":               rgb(0x009e73),
	"poll 1s":                  rgb(0x66c2a5),
	"watermill queue, default": rgb(0xb3a2c7),
	"watermill queue, tuned":   rgb(0x7b5ea7),
	"watermill log, tuned":     rgb(0x9e9ac8),
}

// others are for lines that have no name of their own, in order.
var others = []color.Color{rgb(0x0072b2), rgb(0xe69f00), rgb(0x009e73), rgb(0xcc79a7), rgb(0x56b4e9)}

func rgb(v uint32) color.Color {
	return color.RGBA{R: uint8(v >> 16), G: uint8(v >> 8), B: uint8(v), A: 255}
}

func colorOf(contender string, i int) color.Color {
	if c, ok := colors[contender]; ok {
		return c
	}
	return others[i%len(others)]
}

const (
	plotWidth  = 20 * vg.Centimeter
	plotHeight = 11 * vg.Centimeter
)

func newPlot(title, x, y string) *plot.Plot {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	for _, f := range []*font.Font{&p.Title.TextStyle.Font, &p.X.Label.TextStyle.Font, &p.Y.Label.TextStyle.Font,
		&p.X.Tick.Label.Font, &p.Y.Tick.Label.Font, &p.Legend.TextStyle.Font} {
		f.Variant = "Sans"
		f.Size = font.Points(10)
	}
	p.Title.TextStyle.Font.Size = font.Points(13)
	p.Title.Padding, p.X.Padding, p.Y.Padding = vg.Points(8), vg.Points(4), vg.Points(4)
	p.Legend.ThumbnailWidth, p.Legend.Padding = vg.Points(18), vg.Points(2)
	grid := plotter.NewGrid()
	grid.Vertical.Color, grid.Horizontal.Color = color.Gray{225}, color.Gray{225}
	p.Add(grid)
	return p
}

// save writes the plot as PNG and SVG, with a margin.
func (b *bench) save(p *plot.Plot, suite, name string) error {
	p.BackgroundColor = color.White
	for _, format := range []string{"png", "svg"} {
		canvas, err := draw.NewFormattedCanvas(plotWidth, plotHeight, format)
		if err != nil {
			return err
		}
		all := draw.New(canvas)
		all.SetColor(color.White)
		all.Fill(all.Rectangle.Path())
		margin := vg.Points(10)
		p.Draw(draw.Crop(all, margin, -2*margin, margin, -margin))
		if err := writeImage(canvas, filepath.Join(b.opts.out, name+"."+format)); err != nil {
			return fmt.Errorf("plot %s: %w", name, err)
		}
	}
	b.images = append(b.images, image{suite: suite, name: name, title: p.Title.Text})
	return nil
}

func writeImage(canvas io.WriterTo, path string) error {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer file.Close()
	if _, err := canvas.WriteTo(file); err != nil {
		return err
	}
	return file.Close()
}

func addLine(p *plot.Plot, name string, points plotter.XYs, c color.Color, dots bool) error {
	line, scatter, err := plotter.NewLinePoints(points)
	if err != nil {
		return err
	}
	line.Color, line.Width = c, vg.Points(2)
	scatter.Color, scatter.Shape, scatter.Radius = c, draw.CircleGlyph{}, vg.Points(3)
	p.Add(line)
	if dots {
		p.Add(scatter)
	}
	p.Legend.Add(name, line)
	return nil
}
