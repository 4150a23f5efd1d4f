// SPDX-License-Identifier: Apache-2.0

package main

import (
	"cmp"
	"fmt"
	"net/netip"
	"slices"
	"strings"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/datapath/sweep"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/telemetry"
)

type flowsCommand struct {
	config.Inspect
	Client   pattern `name:"client" placeholder:"ADDRESS" help:"Only flows of this client: ADDRESS, ADDRESS/BITS or ADDRESS:PORT."`
	Front    pattern `name:"front" placeholder:"SOCKET" help:"Only flows through this front: the same, or PROTOCOL/ADDRESS:PORT."`
	Endpoint pattern `name:"endpoint" placeholder:"ADDRESS" help:"Only flows to this endpoint: as for --client."`
}

// flowOutput is an element of `beep flows -o json`: one flow, as the node where it is asked knows it.
type flowOutput struct {
	// Protocol is TCP or UDP.
	Protocol string         `json:"protocol"`
	Client   netip.AddrPort `json:"client"`
	Front    netip.AddrPort `json:"front"`
	Endpoint netip.AddrPort `json:"endpoint"`
	// Role is "local" (the endpoint is on this node), "ingress" (it is on Peer) or "backend" (it is on this node,
	// and the client dialled Peer).
	Role string `json:"role"`
	// Peer is the other node of a tunnel; "" for none.
	Peer netip.Addr `json:"peer"`
	// ClientPortAtEndpoint is the client's port as the endpoint sees it: another one if two flows would be one.
	ClientPortAtEndpoint uint16 `json:"clientPortAtEndpoint"`
	// State is half-open, established, closing or closed.
	State string `json:"state"`
	// Flags are the marks of the flow's row: replied, fin-client, fin-endpoint, closed, paired, tunnelled.
	Flags []string `json:"flags"`
	// IdleSeconds is the time since the last packet, give or take a second.
	IdleSeconds uint32 `json:"idleSeconds"`
	// Table is FLOW_TABLE (TCP), FLOW_DATAGRAMS (UDP) or FLOW_PENDING (half-open).
	Table string `json:"table"`
}

func (f *flowsCommand) Run(c console) error {
	return read(f.PinDir, func(_ *pinfs.Dir, kernel *maps.Kernel) error {
		now, err := sweep.Now()
		if err != nil {
			return err
		}
		out := []flowOutput{}
		err = kernel.Flows(func(flow maps.Flow) bool {
			// The reverse row tells of the same flow, and less.
			if flow.Kind != maps.Reverse && f.wants(flow) {
				out = append(out, flowOutputOf(flow, now))
			}
			return true
		})
		if err != nil {
			return err
		}
		slices.SortFunc(out, flowOutput.compare)
		if f.JSON() {
			return c.json(out)
		}
		return c.table("PROTO CLIENT FRONT ENDPOINT PEER STATE IDLE TABLE", flowRows(out))
	})
}

func (f *flowsCommand) wants(flow maps.Flow) bool {
	return f.Client.matches(flow.Proto, flow.Src) && f.Front.matches(flow.Proto, flow.Dst) && f.Endpoint.matches(flow.Proto, flow.Nat)
}

// flowOutputOf tells a Forward or Backend row; now is in seconds of the clock of LastSeen.
func flowOutputOf(flow maps.Flow, now uint32) flowOutput {
	out := flowOutput{
		Protocol: flow.Proto.String(), Client: flow.Src, Front: flow.Dst, Endpoint: flow.Nat,
		Role: "local", Peer: flow.Peer, ClientPortAtEndpoint: flow.ClientPort,
		State: string(telemetry.StateOf(flow)), Flags: []string{}, Table: flow.Table,
	}
	switch {
	case flow.Kind == maps.Backend:
		out.Role = "backend"
	case flow.Peer.IsValid():
		out.Role = "ingress"
	}
	if flow.Flags != 0 {
		out.Flags = strings.Split(flow.Flags.String(), ",")
	}
	if now > flow.LastSeen {
		out.IdleSeconds = now - flow.LastSeen
	}
	return out
}

func (f flowOutput) compare(o flowOutput) int {
	return cmp.Or(f.Client.Compare(o.Client), f.Front.Compare(o.Front), cmp.Compare(f.Protocol, o.Protocol),
		cmp.Compare(f.Role, o.Role), cmp.Compare(f.Table, o.Table))
}

func flowRows(flows []flowOutput) [][]string {
	var rows [][]string
	for _, f := range flows {
		endpoint, peer := f.Endpoint.String(), local
		if f.ClientPortAtEndpoint != f.Client.Port() {
			endpoint += fmt.Sprintf("(from:%d)", f.ClientPortAtEndpoint)
		}
		switch f.Role {
		case "ingress":
			peer = "to:" + f.Peer.String()
		case "backend":
			peer = "from:" + f.Peer.String()
		}
		rows = append(rows, []string{f.Protocol, f.Client.String(), f.Front.String(), endpoint, peer,
			f.State, number(f.IdleSeconds) + "s", f.Table})
	}
	return rows
}

// pattern is a filter on sockets; the zero pattern matches all.
type pattern struct {
	prefix netip.Prefix
	port   uint16      // 0: any
	proto  model.Proto // 0: any
}

// UnmarshalText reads [PROTOCOL/]ADDRESS, [PROTOCOL/]ADDRESS:PORT or ADDRESS/BITS.
func (p *pattern) UnmarshalText(text []byte) error {
	*p = pattern{}
	rest := string(text)
	if name, socket, found := strings.Cut(rest, "/"); found {
		if proto, err := model.ParseProto(name); err == nil {
			p.proto, rest = proto, socket
		}
	}
	if prefix, err := netip.ParsePrefix(rest); err == nil {
		p.prefix = prefix.Masked()
		return nil
	}
	if socket, err := netip.ParseAddrPort(rest); err == nil {
		p.port = socket.Port()
		rest = socket.Addr().String()
	}
	addr, err := netip.ParseAddr(strings.Trim(rest, "[]"))
	if err != nil {
		return fmt.Errorf("%q: want ADDRESS, ADDRESS/BITS, ADDRESS:PORT or PROTOCOL/ADDRESS:PORT", text)
	}
	addr = addr.Unmap()
	p.prefix = netip.PrefixFrom(addr, addr.BitLen())
	return nil
}

func (p pattern) matches(proto model.Proto, socket netip.AddrPort) bool {
	return (!p.prefix.IsValid() || p.prefix.Contains(socket.Addr())) &&
		(p.port == 0 || p.port == socket.Port()) && (p.proto == 0 || p.proto == proto)
}
