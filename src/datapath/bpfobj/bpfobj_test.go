// SPDX-License-Identifier: Apache-2.0

package bpfobj

import (
	"encoding/binary"
	"fmt"
	"reflect"
	"strings"
	"testing"

	"github.com/cilium/ebpf"
	"github.com/cilium/ebpf/btf"
	"github.com/google/go-cmp/cmp"
)

// golden is the layout of BEEP_ABI 2: size, then name@offset:bytes of each member. A change here is a change of
// the ABI: bump BEEP_ABI in bpf/lib/abi.h with it, and say in the CHANGELOG what becomes of pinned maps.
var golden = map[string]string{
	"socket_key":   "20 addr@0:16 port_be@16:2 proto@18:1 pad@19:1",
	"front_meta":   "24 id@0:4 generation@4:4 count@8:4 ring_size@12:4 flags@16:4 affinity_timeout@20:4",
	"endpoint_key": "12 front_id@0:4 generation@4:4 index@8:4",
	"endpoint":     "36 addr@0:16 peer@16:16 port_be@32:2 pad@34:2",
	"ring_key":     "12 front_id@0:4 generation@4:4 block@8:4",
	"ring_block":   "1024 index@0:1024",
	"flow_key":     "40 src@0:16 dst@16:16 sport_be@32:2 dport_be@34:2 proto@36:1 kind@37:1 pad@38:2",
	"flow": "72 nat_addr@0:16 peer@16:16 uplink@32:4 front_id@36:4 last_seen@40:4 epoch@44:4 flags@48:4 " +
		"nat_port_be@52:2 client_port_be@54:2 tunnel_port_be@56:2 client_mac@58:6 uplink_mac@64:6 proof@70:2",
	"source_key":     "24 prefixlen@0:4 front_id@4:4 addr@8:16",
	"affinity_key":   "24 client@0:16 front_id@16:4 pad@20:4",
	"affinity":       "44 endpoint@0:36 generation@36:4 last_seen@40:4",
	"fragment_key":   "40 src@0:16 dst@16:16 id@32:4 proto@36:1 pad@37:3",
	"fragment_ports": "4 sport_be@0:2 dport_be@2:2",
	"budget":         "16 refilled@0:8 credit@8:8",
	"node_key":       "16 addr@0:16",
	"config":         "56 seed@0:16 underlay_v4@16:16 underlay_v6@32:16 abi@48:4 epoch@52:4",
	"drop_count":     "16 packets@0:8 bytes@8:8",
	"fib_answer": "88 src@0:16 dst@16:16 oif@32:4 tos@36:4 tick@40:8 generation@48:8 " +
		"next_hop@56:16 nh_family@72:4 ifindex@76:4 mtu@80:4 pad@84:4",
}

// goTypes are the generated types of the golden table.
var goTypes = map[string]reflect.Type{
	"socket_key": reflect.TypeFor[BeepSocketKey](), "front_meta": reflect.TypeFor[BeepFrontMeta](),
	"endpoint_key": reflect.TypeFor[BeepEndpointKey](), "endpoint": reflect.TypeFor[BeepEndpoint](),
	"ring_key": reflect.TypeFor[BeepRingKey](), "ring_block": reflect.TypeFor[BeepRingBlock](),
	"flow_key": reflect.TypeFor[BeepFlowKey](), "flow": reflect.TypeFor[BeepFlow](),
	"node_key": reflect.TypeFor[BeepNodeKey](), "config": reflect.TypeFor[BeepConfig](),
	"drop_count": reflect.TypeFor[BeepDropCount](), "source_key": reflect.TypeFor[BeepSourceKey](),
	"affinity_key": reflect.TypeFor[BeepAffinityKey](), "affinity": reflect.TypeFor[BeepAffinity](),
	"fragment_key": reflect.TypeFor[BeepFragmentKey](), "fragment_ports": reflect.TypeFor[BeepFragmentPorts](),
	"budget": reflect.TypeFor[BeepBudget](), "fib_answer": reflect.TypeFor[BeepFibAnswer](),
}

func load(t *testing.T) *ebpf.CollectionSpec {
	t.Helper()
	spec, err := LoadBeep()
	if err != nil {
		t.Fatal(err)
	}
	return spec
}

// inC describes a struct as the compiler laid it out.
func inC(t *testing.T, spec *ebpf.CollectionSpec, name string) string {
	t.Helper()
	var s *btf.Struct
	if err := spec.Types.TypeByName(name, &s); err != nil {
		t.Fatal(err)
	}
	parts := []string{fmt.Sprint(s.Size)}
	for _, m := range s.Members {
		size, err := btf.Sizeof(m.Type)
		if err != nil {
			t.Fatal(err)
		}
		parts = append(parts, fmt.Sprintf("%s@%d:%d", m.Name, m.Offset.Bytes(), size))
	}
	return strings.Join(parts, " ")
}

// inGo describes a struct as Go lays it out, under the names of C.
func inGo(t reflect.Type) string {
	parts := []string{fmt.Sprint(t.Size())}
	for field := range t.Fields() {
		if field.Name != "_" {
			parts = append(parts, fmt.Sprintf("%s@%d:%d", snake(field.Name), field.Offset, field.Type.Size()))
		}
	}
	return strings.Join(parts, " ")
}

// snake turns ClientPortBe into client_port_be.
func snake(name string) string {
	var b strings.Builder
	for i, r := range name {
		if i > 0 && r >= 'A' && r <= 'Z' {
			b.WriteByte('_')
		}
		b.WriteRune(r)
	}
	return strings.ToLower(b.String())
}

func TestLayout(t *testing.T) {
	spec := load(t)
	for name, want := range golden {
		if diff := cmp.Diff(want, inC(t, spec, name)); diff != "" {
			t.Errorf("struct %s in C (-golden +object):\n%s", name, diff)
		}
		if diff := cmp.Diff(want, inGo(goTypes[name])); diff != "" {
			t.Errorf("struct %s in Go (-golden +generated):\n%s", name, diff)
		}
		if size := binary.Size(reflect.Zero(goTypes[name]).Interface()); size != int(goTypes[name].Size()) {
			t.Errorf("struct %s has padding: its members take %d of %d bytes", name, size, goTypes[name].Size())
		}
	}
}

// TestEveryStructOfAMapIsGolden: a key or value of a new map belongs into the table above.
func TestEveryStructOfAMapIsGolden(t *testing.T) {
	for name, m := range load(t).Maps {
		for _, side := range []btf.Type{m.Key, m.Value} {
			if s, ok := btf.As[*btf.Struct](side); ok && golden[s.Name] == "" {
				t.Errorf("map %s holds struct %s, which the golden table lacks", name, s.Name)
			}
		}
	}
}

// TestEnums: numbers are never reused and leave no gap, flags are single bits.
func TestEnums(t *testing.T) {
	spec := load(t)
	enums := map[string]struct {
		count int
		flags bool
	}{
		"direction":   {count: int(BeepDirectionDIRECTIONS) + 1},
		"drop_reason": {count: int(BeepDropReasonDROP_REASONS) + 1},
		"flow_kind":   {count: 3},
		"flow_flag":   {count: 6, flags: true},
		"front_flag":  {count: 2, flags: true},
	}
	for name, want := range enums {
		var enum *btf.Enum
		if err := spec.Types.TypeByName(name, &enum); err != nil {
			t.Fatal(err)
		}
		if len(enum.Values) != want.count {
			t.Errorf("enum %s has %d values, want %d", name, len(enum.Values), want.count)
		}
		first := enum.Values[0].Value
		for i, value := range enum.Values {
			if next := map[bool]uint64{true: 1 << i, false: first + uint64(i)}[want.flags]; value.Value != next {
				t.Errorf("enum %s: %s is %d, want %d", name, value.Name, value.Value, next)
			}
		}
	}
	if rows := load(t).Maps[BeepMapDROPS].MaxEntries; rows != uint32(BeepDropReasonDROP_REASONS)*uint32(BeepDirectionDIRECTIONS) {
		t.Errorf("DROPS has %d rows, want one for each reason and direction", rows)
	}
}
