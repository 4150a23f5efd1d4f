// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

const (
	// requests are sent through each front, each from a source port of its own. The ports choose the pods, the same in
	// every run, as the hash has a fixed seed here: firstPort is one with which both pods show in every row.
	requests  = 4
	firstPort = 40501
	// patience bounds one request.
	patience = 5 * time.Second
)

// tally is what became of the requests through one front.
type tally struct {
	servers map[string]int // answers by pod
	sources map[netip.Addr]bool
}

// ask sends the requests and prints who answered and which client address the server saw.
func (d *demo) ask(ctx context.Context) error {
	d.heading("The client dials every one of them.")
	table := tabwriter.NewWriter(d.out, 0, 0, 3, ' ', 0)
	fmt.Fprintln(table, "THE CLIENT DIALS\tON\tANSWERS COME FROM\tAND SAW AS SOURCE")
	all := map[string]int{}
	for _, node := range nodes {
		for _, family := range families {
			for _, service := range []service{web, dns} {
				if ctx.Err() != nil {
					return ctx.Err()
				}
				at := netip.AddrPortFrom(d.topology.Addr(node, family), service.port)
				result, err := d.askFront(ctx, at, service, family)
				if err != nil {
					return err
				}
				var answers, sources []string
				for _, pod := range pods {
					all[pod] += result.servers[pod]
					answers = append(answers, fmt.Sprintf("%s ×%d", pod, result.servers[pod]))
				}
				for source := range result.sources {
					sources = append(sources, source.String())
				}
				fmt.Fprintf(table, "%s %s\t%s\t%s\t%s\n", service.kind.Proto(), at, node,
					strings.Join(answers, ", "), strings.Join(sources, ", "))
			}
		}
	}
	for _, pod := range pods {
		if all[pod] == 0 {
			d.problem("%s answered nothing", pod)
		}
	}
	return table.Flush()
}

// askFront sends the requests through one front and notes what is not as it should be. Only the end of ctx is an
// error.
func (d *demo) askFront(ctx context.Context, at netip.AddrPort, service service, family topo.Families) (tally, error) {
	result := tally{map[string]int{}, map[netip.Addr]bool{}}
	client := d.topology.Addr("client", family)
	for range requests {
		from := netip.AddrPortFrom(client, firstPort+uint16(d.asked))
		ask := d.askTCP
		if service == dns {
			ask = d.askUDP
		}
		d.asked++
		answer, err := ask(ctx, from, at)
		switch {
		case ctx.Err() != nil:
			return result, ctx.Err()
		case err != nil:
			d.problem("%s %s from %s: %v", service.kind.Proto(), at, from, err)
			continue
		case answer.Client != from:
			d.problem("%s %s: %s saw %s, want %s", service.kind.Proto(), at, answer.Server, answer.Client, from)
		}
		d.answered++
		result.servers[answer.Server]++
		result.sources[answer.Client.Addr()] = true
	}
	return result, nil
}

// askTCP asks a web server by a connection of its own.
func (d *demo) askTCP(ctx context.Context, from, at netip.AddrPort) (traffic.Answer, error) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	client := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, _ string) (net.Conn, error) {
			return d.topology.NS("client").DialFrom(ctx, network, from, at)
		},
	}}
	return traffic.Ask(ctx, client, at)
}

// askUDP sends one datagram. The pods' servers count, and so tell which of them it was.
func (d *demo) askUDP(ctx context.Context, from, at netip.AddrPort) (traffic.Answer, error) {
	before := d.answeredBy()
	sent, err := traffic.SendUDP(ctx, d.topology.NS("client"), at, traffic.Datagrams{Count: 1, From: from, Patience: patience})
	if err != nil {
		return traffic.Answer{}, err
	}
	var answer traffic.Answer
	for source := range sent.Sources {
		answer.Client = source
	}
	if sent.Received != 1 {
		return answer, fmt.Errorf("no answer: %s", sent)
	}
	for pod, count := range d.answeredBy() {
		if count > before[pod] {
			answer.Server = pod
		}
	}
	return answer, nil
}

// answeredBy is how many datagrams each pod has answered so far.
func (d *demo) answeredBy() map[string]int {
	counts := map[string]int{}
	for pod, echoes := range d.echoes {
		for _, echo := range echoes {
			counts[pod] += echo.Count().Answered
		}
	}
	return counts
}
