// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"
	"slices"
	"strconv"
	"strings"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/model"
)

// local is what stands for a peer where the endpoint is on this node.
const local = "local"

// read opens the pinned maps for the length of one function.
func read(pinDir string, use func(*pinfs.Dir, *maps.Kernel) error) error {
	dir, err := pinfs.Open(pinDir)
	var pinned []string
	if err == nil {
		pinned, err = dir.Maps()
	}
	switch {
	case errors.Is(err, fs.ErrNotExist) || err == nil && len(pinned) == 0:
		return fmt.Errorf("nothing is loaded at %s: name the --pin-dir of `beep run` or `beep load`, or run one of them", pinDir)
	case err != nil:
		return explainPermission(err)
	}
	kernel, err := maps.Open(pinDir)
	if err != nil {
		return explainPermission(err)
	}
	defer kernel.Close()
	return use(dir, kernel)
}

// explainPermission adds the remedy to the error of a reader that may not read.
func explainPermission(err error) error {
	if errors.Is(err, fs.ErrPermission) {
		return fmt.Errorf("%w: run it as root", err)
	}
	return err
}

// frontOutput is an element of `beep fronts -o json`.
type frontOutput struct {
	// Front is PROTOCOL/ADDRESS:PORT.
	Front string `json:"front"`
	// Affinity is "none" or "client-ip".
	Affinity string `json:"affinity"`
	// AffinitySeconds is how long a client keeps its endpoint after its last new flow.
	AffinitySeconds uint32 `json:"affinitySeconds"`
	// SourcesLimited says that only clients of Sources are taken; if not, all are.
	SourcesLimited bool             `json:"sourcesLimited"`
	Sources        []netip.Prefix   `json:"sources"`
	ID             uint32           `json:"id"`
	Generation     uint32           `json:"generation"`
	Endpoints      []endpointOutput `json:"endpoints"`
}

// endpointOutput is an endpoint in JSON.
type endpointOutput struct {
	Address netip.AddrPort `json:"address"`
	// Peer is the underlay address of the node that runs it; "" is this node.
	Peer netip.Addr `json:"peer"`
}

type frontsCommand struct{ config.Inspect }

func (f *frontsCommand) Run(c console) error {
	return read(f.PinDir, func(_ *pinfs.Dir, kernel *maps.Kernel) error {
		fronts, err := kernel.Fronts()
		if err != nil {
			return err
		}
		endpoints, err := kernel.Endpoints()
		if err != nil {
			return err
		}
		sources, err := kernel.Sources()
		if err != nil {
			return err
		}
		out := frontOutputs(fronts, endpoints, sources)
		if f.JSON() {
			return c.json(out)
		}
		return c.table("FRONT AFFINITY SOURCES ID GENERATION ENDPOINT PEER", frontRows(out))
	})
}

// frontOutputs lists fronts by socket and their endpoints by index, which is their order.
func frontOutputs(fronts []maps.FrontMeta, endpoints map[maps.EndpointKey]model.Endpoint, sources []maps.SourceKey) []frontOutput {
	out := []frontOutput{}
	for _, front := range fronts {
		one := frontOutput{Front: front.String(), Affinity: "none", AffinitySeconds: front.AffinitySeconds,
			SourcesLimited: front.SourcesLimited, Sources: []netip.Prefix{}, ID: front.ID, Generation: front.Generation,
			Endpoints: []endpointOutput{}}
		if front.ClientIPAffinity {
			one.Affinity = "client-ip"
		}
		for _, source := range sources {
			if front.SourcesLimited && source.Front == front.ID {
				one.Sources = append(one.Sources, source.Prefix)
			}
		}
		for i := range front.Count {
			// One that is missing was flipped away while the maps were read.
			if e, ok := endpoints[maps.EndpointKey{Front: front.ID, Generation: front.Generation, Index: i}]; ok {
				one.Endpoints = append(one.Endpoints, endpointOutput{netip.AddrPortFrom(e.Addr, e.Port), e.Peer})
			}
		}
		out = append(out, one)
	}
	return out
}

// affinity is the cell for people: client-ip,10800s.
func (f *frontOutput) affinity() string {
	if f.AffinitySeconds == 0 {
		return f.Affinity
	}
	return fmt.Sprintf("%s,%ds", f.Affinity, f.AffinitySeconds)
}

// sources is the cell for people: the ranges with commas, all or none.
func (f *frontOutput) sources() string {
	switch {
	case !f.SourcesLimited:
		return "all"
	case len(f.Sources) == 0:
		return "none"
	}
	var ranges []string
	for _, source := range f.Sources {
		ranges = append(ranges, source.String())
	}
	return strings.Join(ranges, ",")
}

// frontRows is a row for each endpoint, and for each front without one.
func frontRows(fronts []frontOutput) [][]string {
	var rows [][]string
	for _, front := range fronts {
		cells := []string{front.Front, front.affinity(), front.sources(), number(front.ID), number(front.Generation)}
		if len(front.Endpoints) == 0 {
			rows = append(rows, append(cells, "", ""))
		}
		for _, e := range front.Endpoints {
			rows = append(rows, append(slices.Clone(cells), e.Address.String(), peerName(e.Peer)))
		}
	}
	return rows
}

// nodesOutput is `beep nodes -o json`.
type nodesOutput struct {
	// Underlay are this node's tunnel addresses, at most one a family.
	Underlay []netip.Addr `json:"underlay"`
	// Peers are the addresses whose tunnels this node accepts.
	Peers []netip.Addr `json:"peers"`
}

type nodesCommand struct{ config.Inspect }

func (n *nodesCommand) Run(c console) error {
	return read(n.PinDir, func(_ *pinfs.Dir, kernel *maps.Kernel) error {
		own, err := underlay(kernel)
		if err != nil {
			return err
		}
		peers, err := kernel.Peers()
		if err != nil {
			return err
		}
		if n.JSON() {
			return c.json(nodesOutput{own, slices.Concat([]netip.Addr{}, peers)})
		}
		var rows [][]string
		for _, addr := range own {
			rows = append(rows, []string{addr.String(), "this node"})
		}
		for _, addr := range peers {
			rows = append(rows, []string{addr.String(), "peer"})
		}
		return c.table("ADDRESS NODE", rows)
	})
}

// underlay is this node's own tunnel addresses.
func underlay(kernel *maps.Kernel) ([]netip.Addr, error) {
	settings, err := kernel.Config()
	if err != nil {
		return nil, err
	}
	own := []netip.Addr{settings.Underlay4, settings.Underlay6}
	return slices.DeleteFunc(own, func(addr netip.Addr) bool { return !addr.IsValid() }), nil
}

type targetsCommand struct{ config.Inspect }

// Run prints POD_TARGETS; -o json is a list of PROTOCOL/ADDRESS:PORT.
func (t *targetsCommand) Run(c console) error {
	return read(t.PinDir, func(_ *pinfs.Dir, kernel *maps.Kernel) error {
		targets, err := kernel.Targets()
		if err != nil {
			return err
		}
		names := []string{}
		var rows [][]string
		for _, target := range targets {
			names = append(names, target.String())
			rows = append(rows, []string{target.String()})
		}
		if t.JSON() {
			return c.json(names)
		}
		return c.table("TARGET", rows)
	})
}

func number[N uint32 | uint64 | int](n N) string { return strconv.FormatInt(int64(n), 10) }

// peerName is a peer, or the word for none.
func peerName(peer netip.Addr) string {
	if !peer.IsValid() {
		return local
	}
	return peer.String()
}
