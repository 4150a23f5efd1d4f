// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// nothing is what is asked for of others than beep.
const nothing = "–"

// writeTargets says which of the targets hold in this record.
func (r *record) writeTargets(b *strings.Builder) {
	b.WriteString("\n## Targets\n\n| target | asked for | measured | holds |\n|---|---|---|---|\n")
	row := func(what, asked, measured string, holds bool) {
		verdict := map[bool]string{true: "yes", false: "no"}[holds]
		if asked == nothing {
			verdict = nothing
		}
		fmt.Fprintf(b, "| %s | %s | %s | %s |\n", what, asked, measured, verdict)
	}
	for _, target := range []struct {
		prefix, what string
		most         float64
	}{
		{"Packet/dir=in/path=remote", "added to a datagram to the pod, by what the better kube-proxy adds", 0.5},
		{"Packet/dir=out/path=remote", "added to a datagram from the pod, likewise", 0.5},
		{"Segment/path=remote", "added to a segment of an established TCP connection, half of them each way, likewise", 0.5},
		{"Connection/path=remote", "added to a TCP connection, likewise", 0.7},
	} {
		for _, s := range r.find(target.prefix) {
			if s.keys["variant"] == beep {
				got := r.beside(stem(s.name))
				row(fmt.Sprintf("%s (IPv%s, %s Services)", target.what, s.keys["ip"], s.keys["services"]),
					fmt.Sprintf("≤ %.1f", target.most), got.ratio(), got.median <= target.most)
			}
		}
	}
	r.writeGrowth(row)
	for _, work := range []struct{ name, what string }{
		{"packet/dir=in", "datagrams, for which the kernel must make room"}, {"segment", "segments of established TCP connections"},
	} {
		const most = 200
		if p := r.get("Program/" + work.name + "/path=remote/ip=4/node=a/dev=eth0/hook=ingress"); p != nil {
			got := spreadOf(p.values["ns/run"]).median
			row(fmt.Sprintf("time of the program that encapsulates, ns, one packet at a time on the live path: %s", work.what),
				fmt.Sprintf("≤ %d", most), fmt.Sprintf("%.0f", got), got <= most)
		}
	}
	if known := r.find("Ingress/curve=flows/flow=established/"); len(known) > 1 {
		slices.SortFunc(known, func(a, b *series) int { return cmp.Compare(a.number("flows"), b.number("flows")) })
		base := known[0]
		for _, s := range known {
			if s.keys["flows"] == "1000" {
				base = s
			}
		}
		last := known[len(known)-1]
		got := growth(last, base)
		row(fmt.Sprintf("a packet of %s flows by one of %s, on the ingress node", last.keys["flows"], base.keys["flows"]),
			"≤ 1.3", got.ratio(), got.median <= 1.3)
		for _, s := range r.find("Memory/curve=flows/") {
			if s.keys["flows"] != last.keys["flows"] {
				continue
			}
			const most = 1.15
			kernel, computed := spreadOf(s.values["kernel-bytes"]).median, spreadOf(s.values["computed-bytes"]).median
			row(fmt.Sprintf("memory of the flow tables that hold %s flows, by what was computed", last.keys["flows"]),
				fmt.Sprintf("≤ %.2f", most), fmt.Sprintf("%.2f (%.0f MiB)", kernel/computed, kernel/(1<<20)), kernel <= most*computed)
		}
	}
}

// writeGrowth compares what packets and connections cost with the most Services and with the fewest. The two were measured at different
// times, so each is taken as a multiple of the plain router beside it.
func (r *record) writeGrowth(row func(what, asked, measured string, holds bool)) {
	const most = 0.05
	for _, prefix := range []string{"Packet/dir=in/path=remote/ip=4", "Connection/path=remote/ip=4"} {
		all := r.find(prefix)
		if len(all) == 0 {
			continue
		}
		first, last := all[0].keys["services"], all[len(all)-1].keys["services"]
		if first == last {
			continue
		}
		for _, variant := range variants {
			relative := func(services string) spread {
				name := fmt.Sprintf("%s/services=%s", prefix, services)
				return spreadOf(paired(r.cpu(name, variant), r.cpu(name, routed), ratio))
			}
			few, many := relative(first), relative(last)
			if few.n == 0 || many.n == 0 {
				continue
			}
			got := many.median/few.median - 1
			asked := "± 5 %"
			if variant != beep {
				asked = nothing
			}
			row(fmt.Sprintf("%s: %s with %s Services by that with %s", strings.ToLower(all[0].keys[""]), variant, last, first),
				asked, fmt.Sprintf("%+.1f %%", 100*got), got <= most && got >= -most)
		}
	}
}
