// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"path/filepath"
	"slices"

	"gonum.org/v1/plot"
	"gonum.org/v1/plot/plotter"
	"gonum.org/v1/plot/plotutil"
	"gonum.org/v1/plot/vg"
)

// The size of a figure.
const width, height = 16 * vg.Centimeter, 9 * vg.Centimeter

// line is a named line of a figure.
type line struct {
	name   string
	points plotter.XYs
}

// draw writes the figures and returns their names.
func (r *record) draw(dir string) (names []string, err error) {
	for _, f := range []struct {
		file, title, x, y string
		lines             []line
	}{
		{"packet-services.svg", "Added to a datagram, client to the remote pod, IPv4", "Services", "ns",
			r.overServices("Packet/dir=in/path=remote/ip=4", 1)},
		{"connection-services.svg", "Added to a TCP connection to the remote pod, IPv4", "Services", "µs",
			r.overServices("Connection/path=remote/ip=4", 1000)},
		{"flows.svg", "A packet on the ingress node by established flows", "flows", "ns", r.overSize("flows")},
		{"fronts.svg", "A packet on the ingress node by fronts", "fronts", "ns", r.overSize("fronts")},
		{"endpoints.svg", "A packet on the ingress node by endpoints of its front", "endpoints", "ns", r.overSize("endpoints")},
		{"controller-time.svg", "The controller's start by Services", "Services", "s",
			r.overScale("Controller/", "services", "start-ns", 1e9)},
		{"controller-memory.svg", "The controller's resident memory by Services", "Services", "MiB",
			r.overScale("Controller/", "services", "resident-bytes", 1<<20)},
		{"publisher.svg", "From the first Node to the last status by nodes", "nodes", "s",
			r.overScale("Publisher/", "nodes", "publish-ns", 1e9)},
	} {
		if !slices.ContainsFunc(f.lines, func(l line) bool { return len(l.points) > 1 }) {
			continue
		}
		if err := drawLines(filepath.Join(dir, f.file), f.title, f.x, f.y, f.lines); err != nil {
			return nil, fmt.Errorf("draw %s: %w", f.file, err)
		}
		names = append(names, f.file)
	}
	return names, nil
}

func drawLines(path, title, x, y string, lines []line) error {
	p := plot.New()
	p.Title.Text, p.X.Label.Text, p.Y.Label.Text = title, x, y
	p.X.Scale, p.X.Tick.Marker = plot.LogScale{}, plot.LogTicks{Prec: -1}
	p.Y.Min = 0
	p.Legend.Top, p.Legend.Left = true, true
	p.Add(plotter.NewGrid())
	var items []any
	for _, l := range lines {
		if len(l.points) > 0 {
			items = append(items, l.name, l.points)
		}
	}
	if err := plotutil.AddLinePoints(p, items...); err != nil {
		return err
	}
	p.Y.Min = min(0, p.Y.Min) // a truncated axis makes mountains of noise
	p.Y.Max *= 1.25           // room for the legend
	return p.Save(width, height, path)
}

// overServices are what the variants add, by the number of Services.
func (r *record) overServices(prefix string, scale float64) (lines []line) {
	for _, variant := range variants {
		l := line{name: variant}
		for _, s := range r.find(prefix) {
			if s.keys["variant"] == variant {
				added := spreadOf(r.overhead(stem(s.name), variant)).median
				l.points = append(l.points, plotter.XY{X: s.number("services"), Y: added / scale})
			}
		}
		lines = append(lines, l)
	}
	return lines
}

// overSize are the two lines of a curve of the ingress node.
func (r *record) overSize(curve string) (lines []line) {
	for _, flow := range []string{"established", "new"} {
		l := line{name: flow}
		for _, s := range r.find("Ingress/curve=" + curve + "/flow=" + flow + "/") {
			l.points = append(l.points, plotter.XY{X: s.number(curve), Y: spreadOf(s.values["cpu-ns/op"]).median})
		}
		slices.SortFunc(l.points, func(a, b plotter.XY) int { return cmp.Compare(a.X, b.X) })
		lines = append(lines, l)
	}
	return lines
}

// overScale is one figure of the controllers by a key of its name.
func (r *record) overScale(prefix, key, unit string, scale float64) []line {
	l := line{name: beep}
	for _, s := range r.find(prefix) {
		l.points = append(l.points, plotter.XY{X: s.number(key), Y: spreadOf(s.values[unit]).median / scale})
	}
	return []line{l}
}
