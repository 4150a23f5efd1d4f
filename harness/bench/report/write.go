// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// The variants as the record has them, and as people read them.
const (
	routed = "routed"
	beep   = "beep"
)

var (
	proxies  = []string{"iptables", "nftables"}
	variants = []string{"iptables", "nftables", "beep", "beep-nftables"}
)

// disturbed is from which share of the machine on, in percent, others are said to have disturbed a round.
const disturbed = 10

// write writes all tables.
func (r *record) write(figures []string) string {
	var b strings.Builder
	b.WriteString("<!-- Written by make bench; edit harness/bench/report instead. -->\n# Results of one run\n\n")
	busy := 0
	for _, percent := range r.others {
		if percent >= disturbed {
			busy++
		}
	}
	fmt.Fprintf(&b, "%s.\n\nOthers used %.0f %% of the machine in the median round; %d of %d rounds were disturbed by more than %d %%.\n"+
		"Figures are medians over rounds, with their quartiles in brackets.\n",
		strings.Join(r.machine, ", "), spreadOf(r.others).median, busy, len(r.others), disturbed)
	r.writeTargets(&b)
	r.writeOverheads(&b, "Packet/dir=in", "CPU time a datagram, client to pod", "ns", 1)
	r.writeOverheads(&b, "Packet/dir=out", "CPU time a datagram, pod to client", "ns", 1)
	r.writeOverheads(&b, "Segment/", "CPU time a segment of an established TCP connection, half of them each way", "ns", 1)
	r.writeOverheads(&b, "Connection/", "CPU time a TCP connection", "µs", 1000)
	r.writeRates(&b)
	r.writePrograms(&b)
	r.writeCurves(&b)
	r.writeScale(&b)
	for _, figure := range figures {
		fmt.Fprintf(&b, "\n![%s](%s)\n", strings.TrimSuffix(figure, ".svg"), figure)
	}
	return b.String()
}

// stem is a name without its variant.
func stem(name string) string { return name[:strings.LastIndex(name, "/variant=")] }

// cpu are the samples of a variant beside those of the router, or nil.
func (r *record) cpu(stem, variant string) []float64 {
	if s := r.get(stem + "/variant=" + variant); s != nil {
		return s.values["cpu-ns/op"]
	}
	return nil
}

// overhead is what a variant adds to the plain router, round by round.
func (r *record) overhead(stem, variant string) []float64 {
	return paired(r.cpu(stem, variant), r.cpu(stem, routed), minus)
}

// best is the kube-proxy mode that adds less.
func (r *record) best(stem string) string {
	return slices.MinFunc(proxies, func(a, b string) int {
		return cmp.Compare(spreadOf(r.overhead(stem, a)).median, spreadOf(r.overhead(stem, b)).median)
	})
}

// beside is what beep adds by what the better kube-proxy adds: the ratio of the medians, and the quartiles of the rounds' own.
func (r *record) beside(stem string) spread {
	ours, theirs := r.overhead(stem, beep), r.overhead(stem, r.best(stem))
	s := spreadOf(paired(ours, theirs, ratio))
	s.median = spreadOf(ours).median / spreadOf(theirs).median
	return s
}

func (r *record) writeOverheads(b *strings.Builder, prefix, title, unit string, scale float64) {
	fmt.Fprintf(b, "\n## %s\n\nThe router's own, and what each adds to it, in %s.\n\n", title, unit)
	b.WriteString("| way | Services | rounds | router | iptables | nftables | beep | beep and nftables | beep by the better |\n" +
		"|---|---|---|---|---|---|---|---|---|\n")
	for _, s := range r.find(prefix) {
		if s.keys["variant"] != routed {
			continue
		}
		name := stem(s.name)
		fmt.Fprintf(b, "| %s | %s | %d | %s |", way(s), s.keys["services"], len(s.rounds), spreadOf(s.values["cpu-ns/op"]).text(scale))
		for _, variant := range variants {
			fmt.Fprintf(b, " +%s |", spreadOf(r.overhead(name, variant)).text(scale))
		}
		fmt.Fprintf(b, " %s |\n", r.beside(name).ratio())
	}
}

// way is a series' way for people.
func way(s *series) string { return fmt.Sprintf("%s, IPv%s", s.keys["path"], s.keys["ip"]) }

// text prints a spread in a unit.
func (s spread) text(scale float64) string {
	if s.n == 0 {
		return "–"
	}
	digits := 0
	if s.median/scale < 100 && scale > 1 {
		digits = 1
	}
	return fmt.Sprintf("%.*f [%.*f, %.*f]", digits, s.median/scale, digits, s.low/scale, digits, s.high/scale)
}

func (s spread) ratio() string { return fmt.Sprintf("%.2f [%.2f, %.2f]", s.median, s.low, s.high) }

// rates are the figures of Rates: benchmark, unit, title, scale.
var rates = []struct {
	name, unit, title string
	scale             float64
}{
	{"Flood", "packets/s", "datagrams of 64 bytes, thousands a second", 1e3},
	{"Stream", "MB/s", "one TCP stream, MB a second", 1},
	{"Connections", "connections/s", "new TCP connections, thousands a second", 1e3},
	{"Request", "p50-ns", "a request under load, p50, µs", 1e3},
	{"Request", "p99-ns", "a request under load, p99, µs", 1e3},
}

func (r *record) writeRates(b *strings.Builder) {
	b.WriteString("\n## Rates and latency\n\n" +
		"| | way | rounds | router | iptables | nftables | beep | beep and nftables |\n" +
		"|---|---|---|---|---|---|---|---|\n")
	for _, rate := range rates {
		for _, s := range r.find(rate.name + "/") {
			if s.keys["variant"] != routed {
				continue
			}
			fmt.Fprintf(b, "| %s | %s | %d |", rate.title, way(s), len(s.rounds))
			for _, variant := range append([]string{routed}, variants...) {
				cell := "–"
				if v := r.get(stem(s.name) + "/variant=" + variant); v != nil {
					cell = spreadOf(v.values[rate.unit]).text(rate.scale)
				}
				fmt.Fprintf(b, " %s |", cell)
			}
			b.WriteString("\n")
		}
	}
}

func (r *record) writePrograms(b *strings.Builder) {
	b.WriteString("\n## beep's programs\n\nTime of a run by kernel.bpf_stats, which has two readings of the clock in it, and runs " +
		"for one packet, segment or connection.\n\n" +
		"| work | way | program | ns a run | runs |\n|---|---|---|---|---|\n")
	for _, s := range r.find("Program/") {
		work := strings.Split(s.name, "/")[1] // packet, segment, connection
		if direction := s.keys["dir"]; direction != "" {
			work = map[string]string{"in": "client to pod", "out": "pod to client"}[direction]
		}
		fmt.Fprintf(b, "| %s | %s | node-%s %s %s | %.0f | %.1f |\n", work, way(s), s.keys["node"], s.keys["dev"], s.keys["hook"],
			spreadOf(s.values["ns/run"]).median, spreadOf(s.values["runs/op"]).median)
	}
}

// curveNames are the curves of an ingress node.
var curveNames = []string{"flows", "fronts", "endpoints"}

func (r *record) writeCurves(b *strings.Builder) {
	b.WriteString("\n## The ingress node by size\n\nCPU time of one packet from the client's raw socket to the tunnel's arrival, in ns, " +
		"and by that of the smallest size in the same round.\n\n" +
		"| curve | size | rounds | established | by the smallest | new flow | by the smallest |\n|---|---|---|---|---|---|---|\n")
	for _, curve := range curveNames {
		known, fresh := r.find("Ingress/curve="+curve+"/flow=established/"), r.find("Ingress/curve="+curve+"/flow=new/")
		sort := func(a, b *series) int { return cmp.Compare(a.number(curve), b.number(curve)) }
		slices.SortFunc(known, sort)
		slices.SortFunc(fresh, sort)
		for i := range min(len(known), len(fresh)) {
			fmt.Fprintf(b, "| %s | %s | %d |", curve, known[i].keys[curve], len(known[i].rounds))
			for _, all := range [][]*series{known, fresh} {
				fmt.Fprintf(b, " %s | %s |", spreadOf(all[i].values["cpu-ns/op"]).text(1), growth(all[i], all[0]).ratio())
			}
			b.WriteString("\n")
		}
	}
}

// growth is a size's cost by that of another, round by round.
func growth(s, by *series) spread {
	return spreadOf(paired(s.values["cpu-ns/op"], by.values["cpu-ns/op"], ratio))
}

func (r *record) writeScale(b *strings.Builder) {
	controllers, publishers := r.find("Controller/"), r.find("Publisher/")
	if len(controllers) > 0 {
		b.WriteString("\n## The controller by Services\n\nOnce each; a change is the median of several.\n\n" +
			"| Services | start to maps as desired, s | one change into the maps, ms | CPU of a change, ms | resident, MiB |\n" +
			"|---|---|---|---|---|\n")
	}
	one := func(s *series, unit string, scale float64) float64 { return spreadOf(s.values[unit]).median / scale }
	for _, s := range controllers {
		fmt.Fprintf(b, "| %s | %.2f | %.0f | %.1f | %.0f |\n", s.keys["services"], one(s, "start-ns", 1e9), one(s, "change-ns", 1e6),
			one(s, "change-cpu-ns", 1e6), one(s, "resident-bytes", 1<<20))
	}
	if len(publishers) > 0 {
		b.WriteString("\n## The publisher by nodes\n\nFrom the first Node that is posted to the last status that lists them all, " +
			"once each.\n\n" +
			"| nodes | Services | published after, s | CPU, s | resident, MiB |\n|---|---|---|---|---|\n")
	}
	for _, s := range publishers {
		fmt.Fprintf(b, "| %s | %s | %.1f | %.2f | %.0f |\n", s.keys["nodes"], s.keys["services"], one(s, "publish-ns", 1e9),
			one(s, "publish-cpu-ns", 1e9), one(s, "resident-bytes", 1<<20))
	}
}
