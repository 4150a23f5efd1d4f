// SPDX-License-Identifier: Apache-2.0

package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// Two rounds of which the second was slow for everybody: what differs is taken within each.
const sample = `goos: linux
cpu: a CPU
round: 1
others: 2%
BenchmarkPacket/dir=in/path=remote/ip=4/services=1/variant=routed 100 1000 cpu-ns/op 1100 ns/op
BenchmarkPacket/dir=in/path=remote/ip=4/services=1/variant=iptables 100 1300 cpu-ns/op 1400 ns/op
BenchmarkPacket/dir=in/path=remote/ip=4/services=1/variant=nftables 100 1200 cpu-ns/op 1300 ns/op
BenchmarkPacket/dir=in/path=remote/ip=4/services=1/variant=beep 100 1080 cpu-ns/op 1300 ns/op
# a note
round: 2
others: 40%
BenchmarkPacket/dir=in/path=remote/ip=4/services=1/variant=routed 100 2000 cpu-ns/op 1100 ns/op
BenchmarkPacket/dir=in/path=remote/ip=4/services=1/variant=iptables 100 2300 cpu-ns/op 1400 ns/op
BenchmarkPacket/dir=in/path=remote/ip=4/services=1/variant=nftables 100 2200 cpu-ns/op 1300 ns/op
BenchmarkPacket/dir=in/path=remote/ip=4/services=1/variant=beep 100 2080 cpu-ns/op 1300 ns/op
BenchmarkIngress/curve=flows/flow=established/fronts=1/endpoints=1/flows=1000000 10 150 cpu-ns/op
BenchmarkIngress/curve=flows/flow=established/fronts=1/endpoints=1/flows=1000 10 100 cpu-ns/op
round:
others:
BenchmarkMemory/curve=flows/fronts=1/endpoints=1/flows=1000000 1 105906176 kernel-bytes 104857600 computed-bytes
BenchmarkProgram/segment/path=remote/ip=4/node=a/dev=eth0/hook=ingress 10 190 ns/run 0.5 runs/op
`

func TestReport(t *testing.T) {
	dir := t.TempDir()
	in := filepath.Join(dir, "record")
	if err := os.WriteFile(in, []byte(sample), 0o600); err != nil {
		t.Fatal(err)
	}
	if err := run(in, dir); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(filepath.Join(dir, "results.md"))
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{
		"goos: linux, cpu: a CPU.",
		"2 of 3 rounds were disturbed",
		"| remote, IPv4 | 1 | 2 | 1500 [1000, 1500] | +300 [300, 300] | +200 [200, 200] | +80 [80, 80] | +– | 0.40 [0.40, 0.40] |",
		"(IPv4, 1 Services) | ≤ 0.5 | 0.40 [0.40, 0.40] | yes |",
		"a packet of 1000000 flows by one of 1000, on the ingress node | ≤ 1.3 | 1.50 [1.50, 1.50] | no |",
		"memory of the flow tables that hold 1000000 flows, by what was computed | ≤ 1.15 | 1.01 (101 MiB) | yes |",
		"segments of established TCP connections | ≤ 200 | 190 | yes |",
		"| segment | remote, IPv4 | node-a eth0 ingress | 190 | 0.5 |",
	} {
		if !strings.Contains(string(text), want) {
			t.Errorf("the report lacks %q:\n%s", want, text)
		}
	}
	if _, err := os.Stat(filepath.Join(dir, "flows.svg")); err != nil {
		t.Error(err)
	}
	if _, err := os.Stat(filepath.Join(dir, "publisher.svg")); err == nil {
		t.Error("a figure without a point was drawn")
	}
}
