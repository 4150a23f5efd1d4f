// SPDX-License-Identifier: Apache-2.0

package main

import (
	"io"
	"net/http"
	"net/netip"
	"os/exec"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/packet"
	"github.com/beep-lb/beep/harness/traffic"
	"github.com/beep-lb/beep/harness/transcript"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/sweep"
	"github.com/beep-lb/beep/src/model"
)

// fixtures are a node with two fronts.
var fixtures = []string{
	"--pin-dir=PIN", "--flow-hash-seed=1", "--fixture=node=192.0.2.1", "--fixture=peer=192.0.2.3", "--fixture=target=tcp/10.42.0.5:8080",
	"--fixture=front=tcp/192.0.2.1:80,10.42.0.5:8080", "--fixture=front=tcp/192.0.2.1:80,10.42.1.5:8080@192.0.2.2",
	"--fixture=front=udp/192.0.2.1:53:affinity", "--fixture=source=udp/192.0.2.1:53,198.51.100.0/24", "--fixture=source=udp/192.0.2.1:53,10.0.0.0/8",
	"--fixture=front=udp/192.0.2.1:54:affinity=5", "--fixture=source=udp/192.0.2.1:54",
}

// frontsWords are the words of `beep fronts`. A generation starts at a number that is drawn, so its digits are not
// compared.
const frontsWords = `FRONT AFFINITY SOURCES ID GENERATION ENDPOINT PEER
UDP/192.0.2.1:53 client-ip,10800s 10.0.0.0/8,198.51.100.0/24 1 # - -
UDP/192.0.2.1:54 client-ip,5s none 2 # - -
TCP/192.0.2.1:80 none all 3 # 10.42.0.5:8080 local
TCP/192.0.2.1:80 none all 3 # 10.42.1.5:8080 192.0.2.2
`

// fronts asks `beep fronts`, which must succeed.
func (m *machine) fronts() string {
	m.t.Helper()
	got := m.do("fronts", "--pin-dir=PIN")
	if got.code != 0 || got.errout != "" {
		m.t.Errorf("fronts: %+v", got)
	}
	var text strings.Builder
	for line := range strings.Lines(got.out) {
		words := strings.Fields(line)
		if len(words) > 4 {
			words[4] = regexp.MustCompile(`^\d+$`).ReplaceAllString(words[4], "#")
		}
		text.WriteString(strings.Join(words, " ") + "\n")
	}
	return text.String()
}

// get asks the daemon's metrics server.
func (m *machine) get(path string) (int, string) {
	m.t.Helper()
	client := http.Client{Transport: &http.Transport{DialContext: m.ns.DialContext, DisableKeepAlives: true}}
	response, err := client.Get("http://127.0.0.1:9962" + path)
	if err != nil {
		m.t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		m.t.Fatal(err)
	}
	return response.StatusCode, string(body)
}

func (m *machine) end(process *netns.Process, signal syscall.Signal) error {
	m.t.Helper()
	if err := process.Signal(signal); err != nil {
		m.t.Fatal(err)
	}
	m.await("the daemon ends", func() string { return "" }, func() bool {
		select {
		case <-process.Done():
			return true
		default:
			return false
		}
	})
	return process.Wait()
}

func TestLifeOfADaemon(t *testing.T) {
	m := newMachine(t)
	process, log := m.daemon(fixtures...)
	for _, line := range []string{`msg="front added" name=TCP/192.0.2.1:80 now="2 endpoints"`, `msg=attached uplink=eth0`} {
		if !strings.Contains(log.String(), line) {
			t.Errorf("the log lacks %q:\n%s", line, log)
		}
	}
	if got := m.fronts(); got != frontsWords {
		t.Errorf("fronts:\n%s", got)
	}
	if code, body := m.get("/readyz"); code != 200 {
		t.Errorf("readyz: %d %s", code, body)
	}
	if _, body := m.get("/metrics"); !strings.Contains(body, "\nbeep_uplink_attached{device=\"eth0\"} 1\n") ||
		!strings.Contains(body, "\nbeep_sweep_removed_total{kind=\"idle-tcp\"} 0\n") {
		t.Errorf("metrics:\n%s", body)
	}
	second := m.do(append([]string{"run"}, fixtures...)...)
	const refusal = `^beep: pin directory is in use: \S+ is locked by process \d+ \(beep\): stop it, or choose another --pin-dir\n$`
	if second.code != 1 || !regexp.MustCompile(refusal).MatchString(second.errout) {
		t.Errorf("a second instance: %+v", second)
	}

	attached := m.state()
	if err := m.end(process, syscall.SIGTERM); err != nil {
		t.Errorf("after SIGTERM: %v\n%s", err, log)
	}
	if state := m.state(); state != attached {
		t.Errorf("SIGTERM changed\n%s\nto\n%s", attached, state)
	}
	status := parse[statusOutput](t, m.do("status", "--pin-dir=PIN", "-o", "json"))
	if !status.Healthy || status.Daemon || len(status.Problems) != 1 || status.Version != "v0-test" {
		t.Errorf("status without a daemon: %+v", status)
	}
	if got := m.fronts(); got != frontsWords {
		t.Errorf("fronts without a daemon:\n%s", got)
	}

	// A restart, and kill -9 after it, write nothing to the maps.
	process, log = m.daemon(fixtures...)
	if strings.Contains(log.String(), "front ") || strings.Contains(log.String(), "config ") {
		t.Errorf("a restart wrote:\n%s", log)
	}
	m.end(process, syscall.SIGKILL) //nolint:errcheck // killed is how it ended
	if got := m.fronts(); got != frontsWords {
		t.Errorf("fronts after kill -9:\n%s", got)
	}
}

func TestFixturesArePruned(t *testing.T) {
	m := newMachine(t)
	if got := m.do(append([]string{"load"}, fixtures...)...); got.code != 0 {
		t.Fatalf("load: %+v", got)
	}
	if got := m.do("load", "--pin-dir=PIN", "--fixture=front=tcp/192.0.2.1:80,10.42.0.6:8080"); got.code != 0 {
		t.Fatalf("load: %+v", got)
	}
	fronts := parse[[]frontOutput](t, m.do("fronts", "--pin-dir=PIN", "-o", "json"))
	if len(fronts) != 1 || fronts[0].ID != 3 || fronts[0].AffinitySeconds != 0 || fronts[0].SourcesLimited || len(fronts[0].Endpoints) != 1 {
		t.Errorf("fronts: %+v", fronts)
	}
	nodes := parse[nodesOutput](t, m.do("nodes", "--pin-dir=PIN", "-o", "json"))
	if len(nodes.Peers) != 0 || len(nodes.Underlay) != 0 {
		t.Errorf("nodes: %+v", nodes)
	}
	if targets := parse[[]string](t, m.do("targets", "--pin-dir=PIN", "-o", "json")); len(targets) != 0 {
		t.Errorf("targets: %+v", targets)
	}
	status := parse[statusOutput](t, m.do("status", "--pin-dir=PIN", "-o", "json"))
	for _, fill := range status.Maps {
		if fill.Map == "FRONT_ENDPOINTS" && fill.Entries != 1 || fill.Map == "FRONT_RING" && fill.Entries != 0 {
			t.Errorf("load left rows behind: %+v", fill)
		}
	}
}

// TestFlowsToEndpointsThatVanish: what no fixture names any more is swept, and nothing else.
func TestFlowsToEndpointsThatVanish(t *testing.T) {
	m := newMachine(t)
	if got := m.do(append([]string{"load"}, fixtures...)...); got.code != 0 {
		t.Fatalf("load: %+v", got)
	}
	m.putFlows()
	_, log := m.daemon("--pin-dir=PIN", "--flow-hash-seed=1", "--fixture=node=192.0.2.1", "--fixture=target=tcp/10.42.0.5:8080",
		"--fixture=front=tcp/192.0.2.1:80,10.42.0.7:8080")
	endpoints := func() string {
		var all []string
		for _, flow := range parse[[]flowOutput](t, m.do("flows", "--pin-dir=PIN", "-o", "json")) {
			all = append(all, flow.Endpoint.String())
		}
		return strings.Join(all, " ")
	}
	if got := endpoints(); got != "10.42.0.5:8080" { // a target's
		t.Errorf("flows to %s\n%s", got, log)
	}
	const metric = "\nbeep_sweep_removed_total{kind=\"endpoint-gone\"} 2\n"
	if _, body := m.get("/metrics"); !strings.Contains(body, metric) {
		t.Errorf("metrics lack %q:\n%s", metric, body)
	}
	if !strings.Contains(log.String(), `msg="swept flows to endpoints that are gone" rows=2 scanned=4`) {
		t.Errorf("log:\n%s", log)
	}
}

func TestUplinkThatComesBack(t *testing.T) {
	m := newMachine(t)
	_, log := m.daemon("--pin-dir=PIN", "--uplink-iface=eth0,small")
	m.ip("link", "delete", "small")
	m.await("readyz tells of the loss", log.String, func() bool {
		code, body := m.get("/readyz")
		return code == 503 && body == "uplink small is not attached\n"
	})
	m.addWire("small", 1200)
	m.await("it is attached again", log.String, func() bool { code, _ := m.get("/readyz"); return code == 200 })
	status := parse[statusOutput](t, m.do("status", "--pin-dir=PIN", "-o", "json"))
	if len(status.Uplinks) != 2 || !status.Daemon {
		t.Errorf("status: %+v", status)
	}
}

func TestStatusOfALostUplink(t *testing.T) {
	m := newMachine(t)
	if got := m.do("load", "--pin-dir=PIN", "--uplink-iface=eth0,small"); got.code != 0 {
		t.Fatalf("load: %+v", got)
	}
	m.ip("link", "delete", "small")
	got := m.do("status", "--pin-dir=PIN")
	if got.code != 1 || !strings.HasPrefix(got.out, "status    not healthy\n          uplink ifindex ") || got.errout != "" {
		t.Errorf("%+v", got)
	}
}

func TestDropsInWords(t *testing.T) {
	m := newMachine(t)
	if got := m.do(append([]string{"load"}, fixtures...)...); got.code != 0 {
		t.Fatalf("load: %+v", got)
	}
	if drops := parse[[]dropOutput](t, m.do("drops", "--pin-dir=PIN", "-o", "json")); len(drops) != 0 {
		t.Errorf("drops: %+v", drops)
	}
	m.dropOne()
	got := m.do("drops", "--pin-dir=PIN")
	if !regexp.MustCompile(`(?m)^no-endpoint +ingress +1 +\d+ +a new flow through a front that has no endpoint.*$`).MatchString(got.out) {
		t.Errorf("drops:\n%s", got.out)
	}
	if all := parse[[]dropOutput](t, m.do("drops", "--pin-dir=PIN", "-o", "json", "--all")); len(all) < 30 {
		t.Errorf("all drops: %+v", all)
	}
}

func TestWatchOfDropsEndsWithSuccess(t *testing.T) {
	m := newMachine(t)
	if got := m.do(append([]string{"load"}, fixtures...)...); got.code != 0 {
		t.Fatalf("load: %+v", got)
	}
	lines := &transcript.Transcript{}
	cmd := exec.Command(m.binary, m.expand([]string{"drops", "--pin-dir=PIN", "--watch"})...)
	cmd.Stdout, cmd.Stderr = lines, lines
	process, err := m.ns.Start(cmd)
	if err != nil {
		t.Fatal(err)
	}
	m.await("a quiet second", lines.String, func() bool { return strings.Contains(lines.String(), "no drops\n") })
	m.dropOne()
	m.await("a drop", lines.String, func() bool { return strings.Contains(lines.String(), "no-endpoint") })
	if err := m.end(process, syscall.SIGINT); err != nil {
		t.Errorf("after SIGINT: %v\n%s", err, lines)
	}
}

// dropOne sends a datagram to the front that has no endpoint, over the wire of eth0.
func (m *machine) dropOne() {
	m.t.Helper()
	raw, err := traffic.OpenRaw(m.ns, "eth0-far")
	if err != nil {
		m.t.Fatal(err)
	}
	defer raw.Close()
	datagram := packet.Build(packet.Eth(packet.MAC1, packet.MAC2), packet.IP("198.51.100.9", "192.0.2.1"), packet.UDP(40000, 53), packet.Payload(8))
	if err := raw.Send(datagram); err != nil {
		m.t.Fatal(err)
	}
}

// putFlows writes rows of flows of each role and state, seven seconds idle.
func (m *machine) putFlows() {
	m.t.Helper()
	kernel, err := maps.Open(m.pins())
	if err != nil {
		m.t.Fatal(err)
	}
	defer kernel.Close()
	now, err := sweep.Now()
	if err != nil {
		m.t.Fatal(err)
	}
	flow := func(kind maps.Kind, table, src, dst, nat, peer string, flags maps.Flags) maps.Flow {
		f := maps.Flow{
			FlowKey: maps.FlowKey{Kind: kind, Proto: model.TCP, Src: netip.MustParseAddrPort(src), Dst: netip.MustParseAddrPort(dst)},
			Table:   table, Nat: netip.MustParseAddrPort(nat), Flags: flags, LastSeen: now - 7, ClientPort: 40000,
		}
		if peer != "" {
			f.Peer = netip.MustParseAddr(peer)
		}
		return f
	}
	for _, f := range []maps.Flow{
		flow(maps.Forward, maps.FlowTable, "198.51.100.9:40000", "192.0.2.1:80", "10.42.0.5:8080", "", maps.Replied|maps.Paired),
		flow(maps.Reverse, maps.FlowTable, "10.42.0.5:8080", "198.51.100.9:40000", "192.0.2.1:80", "", maps.Replied|maps.Paired),
		flow(maps.Forward, maps.FlowPending, "198.51.100.7:40000", "192.0.2.1:80", "10.42.1.5:8080", "192.0.2.2", 0),
		flow(maps.Backend, maps.FlowTable, "[2001:db8:c::9]:40001", "[2001:db8:b::3]:80", "[2001:db8:a::5]:8080", "192.0.2.3",
			maps.Replied|maps.FinClient|maps.Paired|maps.Tunnelled),
	} {
		if err := kernel.PutFlow(f); err != nil {
			m.t.Fatal(err)
		}
	}
}

func TestFlows(t *testing.T) {
	m := newMachine(t)
	if got := m.do(append([]string{"load"}, fixtures...)...); got.code != 0 {
		t.Fatalf("load: %+v", got)
	}
	m.putFlows()
	const (
		pending     = "TCP 198.51.100.7:40000 192.0.2.1:80 10.42.1.5:8080 to:192.0.2.2 half-open 7s FLOW_PENDING"
		established = "TCP 198.51.100.9:40000 192.0.2.1:80 10.42.0.5:8080 local established 7s FLOW_TABLE"
		closing     = "TCP [2001:db8:c::9]:40001 [2001:db8:b::3]:80 [2001:db8:a::5]:8080(from:40000) from:192.0.2.3 closing 7s FLOW_TABLE"
	)
	// Cells are compared, not the blanks between; a second may have passed since the rows were written.
	cells := func(text string) string {
		var lines []string
		for line := range strings.Lines(text) {
			lines = append(lines, strings.ReplaceAll(strings.Join(strings.Fields(line), " "), " 8s ", " 7s "))
		}
		return strings.Join(lines, "\n")
	}
	for _, tt := range []struct {
		filters string
		want    []string
	}{
		{"", []string{pending, established, closing}},
		{"--client=198.51.100.9", []string{established}},
		{"--client=198.51.100.0/24 --endpoint=10.42.1.5", []string{pending}},
		{"--front=tcp/[2001:db8:b::3]:80", []string{closing}},
		{"--front=udp/192.0.2.1", nil},
	} {
		args := append([]string{"flows", "--pin-dir=PIN"}, strings.Fields(tt.filters)...)
		want := strings.Join(append([]string{"PROTO CLIENT FRONT ENDPOINT PEER STATE IDLE TABLE"}, tt.want...), "\n")
		if got := m.do(args...); cells(got.out) != want || got.code != 0 {
			t.Errorf("flows %s:\n%s%s\nwant\n%s", tt.filters, got.out, got.errout, want)
		}
	}
	flows := parse[[]flowOutput](t, m.do("flows", "--pin-dir=PIN", "-o", "json", "--client=2001:db8:c::9"))
	if len(flows) != 1 || flows[0].Role != "backend" || flows[0].ClientPortAtEndpoint != 40000 ||
		strings.Join(flows[0].Flags, " ") != "replied fin-client paired tunnelled" {
		t.Errorf("flows in JSON: %+v", flows)
	}
}
