// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/explain"
)

// explainPatience bounds the wait for the controller's answer: it reads the nodes' Leases from the API server first.
const explainPatience = 30 * time.Second

type explainCommand struct{ config.Explain }

// Run asks the controller, since the pins know nothing of Services. The answer is printed as it is: what it says is
// compile's, and its form explain's.
func (e *explainCommand) Run(c console) error {
	ctx, cancel := context.WithTimeout(context.Background(), explainPatience)
	defer cancel()
	answer, err := explain.Ask(ctx, e.Socket(), e.Name)
	if err != nil {
		return err
	}
	if e.JSON() {
		return c.json(answer)
	}
	for _, warning := range answer.Warnings {
		fmt.Fprintf(c.out, "warning   %s\n", warning)
	}
	if answer.Service != nil {
		return c.explainService(answer)
	}
	return c.explainNode(answer)
}

func (c console) explainService(answer explain.Answer) error {
	service := answer.Service
	fmt.Fprintf(c.out, "service   %s\n", service.Name)
	fmt.Fprintf(c.out, "served    %s\n", yesNo(service.Served))
	c.because(service.Why)
	fmt.Fprintf(c.out, "publisher %s\n", publisher(answer))
	var ports, addresses, endpoints [][]string
	for _, p := range service.Ports {
		ports = append(ports, []string{p.Port, yesNo(p.Served), sentences(p.Why)})
	}
	for _, a := range service.Addresses {
		address := a.Address
		if address == "" {
			address = "(" + strings.Join(a.Families, ",") + ")"
		}
		addresses = append(addresses, []string{address, a.Node, strings.ReplaceAll(string(a.State), " ", "-"), sentences(a.Why)})
	}
	for _, e := range service.Endpoints {
		endpoints = append(endpoints, []string{e.Port, e.Endpoint, e.Node, strings.ReplaceAll(e.Target, " ", "/"), e.Slice,
			yesNo(e.Used), sentences(e.Why)})
	}
	if err := c.part("", "PORT SERVED WHY", ports); err != nil {
		return err
	}
	if err := c.part("", "ADDRESS NODE STATE WHY", addresses); err != nil {
		return err
	}
	return c.part(fmt.Sprintf("New connections through %s go to the endpoints that are used:\n", answer.By),
		"PORT ENDPOINT NODE TARGET SLICE USED WHY", endpoints)
}

func (c console) explainNode(answer explain.Answer) error {
	node := answer.Node
	fmt.Fprintf(c.out, "node      %s\n", node.Name)
	fmt.Fprintf(c.out, "listable  %s\n", yesNo(node.Listable))
	c.because(node.Why)
	fmt.Fprintf(c.out, "publisher %s\n", publisher(answer))
	fmt.Fprintf(c.out, "addresses internal %s; external %s\n",
		list(node.InternalIPs, netip.Addr.String), list(node.ExternalIPs, netip.Addr.String))
	fmt.Fprintf(c.out, "pods      %s\n", list(node.PodCIDRs, netip.Prefix.String))
	fmt.Fprintf(c.out, "zone      %s\n", orNone(node.Zone))
	tunnels := "as to any node"
	if !node.Attached {
		tunnels = "only where no other endpoint can be used: beep is not known to be attached there"
	}
	fmt.Fprintf(c.out, "tunnels   %s\n", tunnels)
	if node.Lease == nil {
		fmt.Fprintf(c.out, "lease     none\n")
	} else {
		fmt.Fprintf(c.out, "lease     renewed %s ago; attached %s; stopped %s; addresses %s; Services that do not fit: %s\n",
			time.Duration(node.Lease.AgeSeconds*float64(time.Second)), yesNo(node.Lease.Attached), yesNo(node.Lease.Left),
			list(node.Lease.Addresses, netip.Addr.String), list(node.Lease.Refused, func(name string) string { return name }))
	}
	var services [][]string
	for _, s := range node.Services {
		services = append(services, []string{s.Name, strings.Join(s.Addresses, ","), sentences(s.Why)})
	}
	return c.part("", "SERVICE LISTS WHY", services)
}

// publisher is who writes the Services' statuses.
func publisher(answer explain.Answer) string {
	if answer.Manifests {
		return "every node by itself, into its status file beside the manifests"
	}
	return orNone(answer.Publisher)
}

// part prints a table after an empty line and a heading, if it has rows.
func (c console) part(heading, header string, rows [][]string) error {
	if len(rows) == 0 {
		return nil
	}
	fmt.Fprintf(c.out, "\n%s", heading)
	return c.table(header, rows)
}

// because prints reasons below the line that they are about.
func (c console) because(why []explain.Why) {
	for _, w := range why {
		fmt.Fprintf(c.out, "          %s\n", w)
	}
}

// sentences are the reasons in one cell, which is the last of its row.
func sentences(why []explain.Why) string {
	var texts []string
	for _, w := range why {
		texts = append(texts, w.String())
	}
	return strings.Join(texts, " | ")
}

func list[T any](items []T, text func(T) string) string {
	var texts []string
	for _, item := range items {
		texts = append(texts, text(item))
	}
	return orNone(strings.Join(texts, ", "))
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func yesNo(is bool) string {
	if is {
		return "yes"
	}
	return "no"
}
