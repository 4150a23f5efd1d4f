// SPDX-License-Identifier: Apache-2.0

package compile_test

import (
	"fmt"
	"net/netip"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

// scenario is what a file below testdata says, one object a line and its fields in any order:
//
//	rules [class=C] [pods=PREFIX,…] [mode=Proxy] [max=N]
//	node NAME [ADDRESS…] [external=ADDRESS,…] [pods=PREFIX,…] [zone=Z] [exclude=VALUE] [tainted] [deleting] [detached]
//	service NS/NAME PORT/PROTOCOL[:NAME]… [families=IPv4,IPv6] [created=N] [uid=U] [class=C] [local] [preferSameNode]
//	        [affinity[=DURATION]] [sources=RANGE;…] [annotation=TEXT] [loadBalancerIP=A] [ingress=ENTRY,…] [otherProxy] [deleting]
//	slice NS/NAME SERVICE FAMILY PORT/PROTOCOL[:NAME]…
//	endpoint ADDRESS [on=NODE] [uid=U] [ready=B] [serving=B] [terminating=B] [forNodes=N,…] [forZones=Z,…]
//	lease NODE [ADDRESS…] [unattached] [left] [late] [refuses=NS/NAME,…]
//	live NODE…
//	known ADDRESS…
//
// An underscore in a value is a space. Without a lease line every node has a live lease; "lease -" is none at all.
// An ENTRY is ADDRESS[/MODE] or host:NAME.
type scenario struct {
	title    string
	snapshot model.Snapshot
	rules    compile.Rules
	nodeIPs  []netip.Addr
	leases   []*model.Lease
	mode     string
	max      int
	memory   compile.Memory
}

func (s *scenario) self(node string) compile.Self {
	return compile.Self{Rules: s.rules, Node: node, NodeIPs: s.nodeIPs}
}

func (s *scenario) publishing() compile.Publishing {
	return compile.Publishing{Rules: s.rules, IPMode: s.mode, MaxNodes: s.max}
}

// fields are the words behind the first of a line: plain ones, and those with a value.
type fields struct {
	t     testing.TB
	plain []string
	named map[string]string
}

func (f *fields) flag(name string) bool {
	for i, word := range f.plain {
		if word == name {
			f.plain = append(f.plain[:i:i], f.plain[i+1:]...)
			return true
		}
	}
	return false
}

func (f *fields) value(name string) string {
	value := f.named[name]
	delete(f.named, name)
	return strings.ReplaceAll(value, "_", " ")
}

func (f *fields) list(name, separator string) []string {
	if _, given := f.named[name]; !given {
		return nil
	}
	return strings.Split(f.value(name), separator)
}

func (f *fields) number(name string) int {
	text := f.value(name)
	if text == "" {
		return 0
	}
	n, err := strconv.Atoi(text)
	if err != nil {
		f.t.Fatal(err)
	}
	return n
}

func (f *fields) condition(name string) model.Condition {
	switch f.value(name) {
	case "true":
		return model.True
	case "false":
		return model.False
	}
	return model.Unset
}

func addrs(texts []string) []netip.Addr {
	var list []netip.Addr
	for _, text := range texts {
		list = append(list, netip.MustParseAddr(text))
	}
	return list
}

func prefixes(texts []string) []netip.Prefix {
	var list []netip.Prefix
	for _, text := range texts {
		list = append(list, netip.MustParsePrefix(text))
	}
	return list
}

func families(texts []string) []model.Family {
	var list []model.Family
	for _, text := range texts {
		list = append(list, map[string]model.Family{"IPv4": model.IPv4, "IPv6": model.IPv6, "FQDN": 0}[text])
	}
	return list
}

func key(text string) model.ObjectKey {
	namespace, name, _ := strings.Cut(text, "/")
	return model.ObjectKey{Namespace: namespace, Name: name}
}

// port reads 80/TCP:http.
func port(t testing.TB, text string) model.ServicePort {
	number, rest, _ := strings.Cut(text, "/")
	proto, name, _ := strings.Cut(rest, ":")
	n, err := strconv.ParseUint(number, 10, 16)
	p, known := map[string]model.Proto{"TCP": model.TCP, "UDP": model.UDP, "SCTP": model.SCTP}[proto]
	if err != nil || !known {
		t.Fatalf("port %q: want NUMBER/PROTOCOL[:NAME]", text)
	}
	return model.ServicePort{Name: name, Proto: p, Port: uint16(n)}
}

func parseScenario(t testing.TB, text string) *scenario {
	t.Helper()
	s := &scenario{rules: compile.Rules{
		ReservedPorts: []compile.PortRange{{Proto: model.TCP, First: 22, Last: 22}, {Proto: model.TCP, First: 2379, Last: 2380},
			{Proto: model.TCP, First: 6443, Last: 6443}, {Proto: model.TCP, First: 10250, Last: 10250}, {Proto: model.UDP, First: 6081, Last: 6081}},
		NodePorts: []compile.PortRange{{Proto: model.TCP, First: 30000, Last: 32767}, {Proto: model.UDP, First: 30000, Last: 32767}},
		OwnPorts:  []compile.PortRange{{Proto: model.TCP, First: 9962, Last: 9963}},
	}}
	leased := false
	for line := range strings.Lines(text) {
		line = strings.TrimSpace(line)
		if comment, is := strings.CutPrefix(line, "#"); is && s.title == "" {
			s.title = strings.TrimSpace(comment)
		}
		if line == "" || line[0] == '#' {
			continue
		}
		words := strings.Fields(line)
		f := &fields{t: t, named: map[string]string{}}
		for _, word := range words[1:] {
			if name, value, named := strings.Cut(word, "="); named {
				f.named[name] = value
			} else {
				f.plain = append(f.plain, word)
			}
		}
		leased = leased || words[0] == "lease"
		s.read(words[0], f)
		if len(f.named) > 0 {
			t.Fatalf("%s: unknown fields %v", line, f.named)
		}
	}
	if !leased {
		s.leaseAll()
	}
	return s
}

func (s *scenario) read(kind string, f *fields) {
	switch kind {
	case "rules":
		s.rules.LoadBalancerClass, s.rules.PodCIDRs = f.value("class"), prefixes(f.list("pods", ","))
		s.mode, s.max, s.nodeIPs = f.value("mode"), f.number("max"), addrs(f.list("nodeIPs", ","))
	case "node":
		s.snapshot.Nodes = append(s.snapshot.Nodes, readNode(f))
	case "service":
		s.snapshot.Services = append(s.snapshot.Services, readService(f))
	case "slice":
		s.snapshot.Slices = append(s.snapshot.Slices, readSlice(f))
	case "endpoint":
		last := s.snapshot.Slices[len(s.snapshot.Slices)-1]
		last.Endpoints = append(last.Endpoints, readEndpoint(f))
	case "lease":
		if f.flag("-") {
			return
		}
		lease := &model.Lease{Attached: !f.flag("unattached"), Left: f.flag("left"), Late: f.flag("late")}
		for _, service := range f.list("refuses", ",") {
			lease.Refused = append(lease.Refused, key(service))
		}
		lease.Node, lease.Addresses = f.plain[0], addrs(f.plain[1:])
		if lease.Addresses == nil {
			lease.Addresses = compile.Addresses(s.snapshot, s.self(lease.Node))
		}
		s.leases = append(s.leases, lease)
	case "live":
		s.memory.Live = f.plain
	case "known":
		s.memory.Known = addrs(f.plain)
	default:
		f.t.Fatalf("unknown object %q", kind)
	}
}

// leaseAll gives every node a live lease.
func (s *scenario) leaseAll() {
	for _, node := range s.snapshot.Nodes {
		s.leases = append(s.leases, &model.Lease{
			Node: node.Name, Attached: true, Addresses: compile.Addresses(s.snapshot, s.self(node.Name)),
		})
	}
}

func readNode(f *fields) *model.Node {
	node := &model.Node{ToBeDeleted: f.flag("tainted"), Deleting: f.flag("deleting"), Detached: f.flag("detached")}
	node.ExternalIPs, node.PodCIDRs, node.Zone = addrs(f.list("external", ",")), prefixes(f.list("pods", ",")), f.value("zone")
	if _, node.Exclude.Set = f.named["exclude"]; node.Exclude.Set {
		node.Exclude.Value = f.value("exclude")
	}
	node.Name, node.InternalIPs = f.plain[0], addrs(f.plain[1:])
	return node
}

func readService(f *fields) *model.Service {
	s := &model.Service{
		UID: f.value("uid"), Created: int64(f.number("created")), Class: f.value("class"),
		Deleting: f.flag("deleting"), OtherProxy: f.flag("otherProxy"), ExternalLocal: f.flag("local"),
		PreferSameNode: f.flag("preferSameNode"), ClientIPAffinity: f.flag("affinity"),
		SourceRangesAnnotation: f.value("annotation"), LoadBalancerIP: f.value("loadBalancerIP"),
		SourceRanges: f.list("sources", ";"), IPFamilies: []model.Family{model.IPv4},
	}
	if list := f.list("families", ","); list != nil {
		s.IPFamilies = families(list)
	}
	if timeout := f.value("affinity"); timeout != "" {
		s.ClientIPAffinity = true
		s.AffinityTimeout, _ = time.ParseDuration(timeout)
	}
	for _, entry := range f.list("ingress", ",") {
		if host, is := strings.CutPrefix(entry, "host:"); is {
			s.Ingress = append(s.Ingress, model.Ingress{Hostname: host})
			continue
		}
		ip, mode, _ := strings.Cut(entry, "/")
		s.Ingress = append(s.Ingress, model.Ingress{IP: ip, IPMode: mode})
	}
	s.ObjectKey = key(f.plain[0])
	for _, text := range f.plain[1:] {
		s.Ports = append(s.Ports, port(f.t, text))
	}
	return s
}

func readSlice(f *fields) *model.Slice {
	slice := &model.Slice{ObjectKey: key(f.plain[0]), Service: f.plain[1], Family: families(f.plain[2:3])[0]}
	for _, text := range f.plain[3:] {
		p := port(f.t, text)
		slice.Ports = append(slice.Ports, model.SlicePort(p))
	}
	return slice
}

func readEndpoint(f *fields) model.SliceEndpoint {
	endpoint := model.SliceEndpoint{
		Node: f.value("on"), TargetUID: f.value("uid"),
		Ready: f.condition("ready"), Serving: f.condition("serving"), Terminating: f.condition("terminating"),
		NodeHints: f.list("forNodes", ","), ZoneHints: f.list("forZones", ","),
	}
	if addr, err := netip.ParseAddr(f.plain[0]); err == nil {
		endpoint.Addr = addr
	}
	return endpoint
}

// dump is everything that is compiled of the scenario.
func (s *scenario) dump() string {
	var b strings.Builder
	for _, node := range s.snapshot.Nodes {
		desired, reasons := compile.Datapath(s.snapshot, s.self(node.Name))
		fmt.Fprintf(&b, "node %s%s", node.Name, dumpDesired(desired))
		dumpReasons(&b, reasons)
	}
	published, reasons := compile.Publication(s.snapshot, s.leases, s.publishing(), s.memory)
	b.WriteString("published" + dumpPublished(published))
	dumpReasons(&b, reasons)
	for _, service := range s.snapshot.Services {
		why := compile.Unpublished(s.snapshot, s.leases, s.publishing(), s.memory,
			func(of model.ObjectKey, _ string) bool { return of == service.ObjectKey })
		dumpReasons(&b, why)
	}
	return b.String()
}

func dumpReasons(b *strings.Builder, reasons []compile.Reason) {
	for _, r := range reasons {
		fmt.Fprintf(b, "    %s: %s: %s\n", r.Code, r.Subject(), r.Text())
	}
}

// dumpDesired prints a datapath, one object a line.
func dumpDesired(d model.Desired) string {
	var b strings.Builder
	for _, underlay := range []netip.Addr{d.Underlay4, d.Underlay6} {
		if underlay.IsValid() {
			fmt.Fprintf(&b, " underlay %s", underlay)
		}
	}
	b.WriteString("\n")
	for _, peer := range d.Peers {
		fmt.Fprintf(&b, "  peer %s\n", peer)
	}
	for _, target := range d.Targets {
		fmt.Fprintf(&b, "  target %s\n", target)
	}
	for _, front := range d.Fronts {
		fmt.Fprintf(&b, "  front %s", front.Socket)
		if front.ClientIPAffinity || front.AffinityTimeout != 0 {
			fmt.Fprintf(&b, " affinity %s", front.AffinityTimeout)
		}
		if front.Sources != nil {
			fmt.Fprintf(&b, " sources %s", front.Sources)
		}
		b.WriteString(" →")
		for _, endpoint := range front.Endpoints {
			fmt.Fprintf(&b, " %s", endpoint)
		}
		b.WriteString("\n")
	}
	return b.String()
}

func dumpPublished(p compile.Published) string {
	var b strings.Builder
	if len(p.Held) > 0 {
		fmt.Fprintf(&b, " held %s", p.Held)
	}
	b.WriteString("\n")
	for _, status := range p.Statuses {
		fmt.Fprintf(&b, "  %s", status.Service.ObjectKey)
		if status.Changed {
			b.WriteString(" write")
		}
		b.WriteString(":")
		for _, entry := range status.Ingress {
			fmt.Fprintf(&b, " %s", dumpEntry(entry))
		}
		b.WriteString("\n")
	}
	return b.String()
}

func dumpEntry(entry model.Ingress) string {
	text := entry.IP + entry.Hostname
	if entry.IPMode != "" {
		text += "/" + entry.IPMode
	}
	for _, p := range entry.Ports {
		text += fmt.Sprintf("[%d/%s %s]", p.Port, p.Protocol, p.Error)
	}
	return text
}
