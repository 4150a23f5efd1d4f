// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net/netip"
	"os"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/beep-lb/beep/src/model"
)

// parseController reads args as `beep-controller` would.
func parseController(t *testing.T, args ...string) (Controller, error) {
	t.Helper()
	var c Controller
	err := NewFlags(&c).Parse(args, os.LookupEnv)
	if err == nil {
		err = c.Validate()
	}
	return c, err
}

func TestControllerDefaults(t *testing.T) {
	t.Setenv("NODE_NAME", "a")
	t.Setenv("BEEP_PIN_DIR", "/sys/fs/bpf/beep")
	got, err := parseController(t)
	if err != nil {
		t.Fatal(err)
	}
	want := Controller{
		PinDir: "/sys/fs/bpf/beep", NodeName: "a", ReservedPorts: "22/tcp,2379-2380/tcp,6443/tcp,10250/tcp,6081/udp",
		NodePortRange: "30000-32767", GenevePort: 6081, IngressIPMode: "VIP", MetricsAddr: "127.0.0.1:9963", ReadyFile: "/tmp/beep-ready", LogLevel: "info", LogFormat: "text",
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("defaults differ from the documented table (-want +got):\n%s", diff)
	}
	reserved := []PortRange{
		{model.TCP, 22, 22}, {model.TCP, 2379, 2380}, {model.TCP, 6443, 6443}, {model.TCP, 10250, 10250}, {model.UDP, 6081, 6081},
	}
	if diff := cmp.Diff(reserved, got.Reserved()); diff != "" {
		t.Error(diff)
	}
}

func TestControllerAddresses(t *testing.T) {
	got, err := parseController(t, "--pin-dir=/p", "--node-name=a", "--node-ip=::ffff:192.0.2.1", "--node-ip=2001:db8:b::1",
		"--pod-cidr=10.42.1.0/24,2001:db8:a:1::/64")
	if err != nil {
		t.Fatal(err)
	}
	addrs := []netip.Addr{netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8:b::1")}
	pods := []netip.Prefix{netip.MustParsePrefix("10.42.1.0/24"), netip.MustParsePrefix("2001:db8:a:1::/64")}
	if got, want := got.Addresses(), addrs; !cmp.Equal(want, got, cmp.Comparer(func(a, b netip.Addr) bool { return a == b })) {
		t.Errorf("%v, want %v", got, want)
	}
	if got, want := got.Pods(), pods; !cmp.Equal(want, got, cmp.Comparer(func(a, b netip.Prefix) bool { return a == b })) {
		t.Errorf("%v, want %v", got, want)
	}
}

func TestControllerRefusals(t *testing.T) {
	for _, tt := range []struct {
		arg  string
		want string
	}{
		{"--pin-dir=beep", `--pin-dir (BEEP_PIN_DIR) "beep": want an absolute path on bpffs`},
		{"--node-name=", `--node-name (NODE_NAME) "": is required`},
		{"--node-ip=192.0.2.256", `--node-ip "192.0.2.256": want a unicast address`},
		{"--node-ip=fe80::1%eth0", `--node-ip "fe80::1%eth0": want a unicast address`},
		{"--node-ip=224.0.0.1", `--node-ip "224.0.0.1": want a unicast address`},
		{"--node-ip=192.0.2.1,192.0.2.2", `--node-ip "192.0.2.2": is IPv4 as 192.0.2.1 is: give one a family`},
		{"--pod-cidr=10.42.1.0/24,10.42.2.0/24", `--pod-cidr "10.42.2.0/24": is IPv4 as 10.42.1.0/24 is: give one a family`},
		{"--pod-cidr=2001:db8:a::/64,2001:db8:a:1::/64", `--pod-cidr "2001:db8:a:1::/64": is IPv6 as`},
		{"--pod-cidr=10.42.1.5/24", `--pod-cidr "10.42.1.5/24": want a prefix without host bits`},
		{"--reserved-ports=22", `--reserved-ports (BEEP_RESERVED_PORTS) "22": "22": want PORT/PROTOCOL`},
		{"--reserved-ports=0/tcp", `--reserved-ports (BEEP_RESERVED_PORTS) "0/tcp": "0/tcp": want ports from 1 to 65535`},
		{"--reserved-ports=80-22/tcp", `"80-22/tcp": want ports from 1 to 65535, the lower one first`},
		{"--reserved-ports=1-70000/udp", `"1-70000/udp": want ports`},
		{"--node-port-range=32767-30000", `--node-port-range (BEEP_NODE_PORT_RANGE) "32767-30000": want ports from 1 to 65535`},
		{"--geneve-port=0", `--geneve-port (BEEP_GENEVE_PORT) "0": out of range`},
		{"--explain-socket=sock", `--explain-socket (BEEP_EXPLAIN_SOCKET) "sock": want an absolute path`},
		{"--ready-file=ready", `--ready-file (BEEP_READY_FILE) "ready": want an absolute path`},
		{"--metrics-addr=localhost:9963", `--metrics-addr (BEEP_METRICS_ADDR) "localhost:9963": want ADDRESS:PORT`},
		{"--ingress-ip-mode=vip", `--ingress-ip-mode (BEEP_INGRESS_IP_MODE) "vip": want VIP or Proxy`},
		{"--max-published-nodes=-1", `--max-published-nodes (BEEP_MAX_PUBLISHED_NODES) "-1": out of range`},
		{"--log-level=loud", `--log-level (BEEP_LOG_LEVEL) "loud": want debug, info, warn or error`},
		{"--log-format=xml", `--log-format (BEEP_LOG_FORMAT) "xml": want text or json`},
	} {
		t.Run(tt.arg, func(t *testing.T) {
			_, err := parseController(t, "--pin-dir=/p", "--node-name=a", tt.arg)
			var problems Problems
			if !errors.As(err, &problems) || len(problems) != 1 || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("%v\nwant %s", err, tt.want)
			}
		})
	}
	if _, err := parseController(t); err == nil || !strings.Contains(err.Error(), "pin-dir") || !strings.Contains(err.Error(), "node-name") {
		t.Errorf("nothing given: %v", err)
	}
}

func TestPortsThatAreNobodysToTake(t *testing.T) {
	for _, tt := range []struct {
		args []string
		want string
	}{
		{nil, "30000-32767/TCP 30000-32767/UDP 6081/UDP 9962/TCP 9963/TCP"},
		{[]string{"--node-port-range=31000", "--geneve-port=7000", "--metrics-addr=:9100"}, "31000/TCP 31000/UDP 7000/UDP 9962/TCP 9100/TCP"},
		{[]string{"--node-port-range=", "--metrics-addr="}, "6081/UDP 9962/TCP"},
		{[]string{"--node-port-range=", "--metrics-addr=[::1]:9962"}, "6081/UDP 9962/TCP"},
	} {
		got, err := parseController(t, append(tt.args, "--pin-dir=/p", "--node-name=a")...)
		if err != nil {
			t.Fatal(err)
		}
		var words []string
		for _, ports := range append(got.NodePorts(), got.OwnPorts()...) {
			words = append(words, ports.String())
		}
		if got := strings.Join(words, " "); got != tt.want {
			t.Errorf("%v: %s, want %s", tt.args, got, tt.want)
		}
	}
	var daemon Datapath
	if field, _ := reflect.TypeOf(daemon).FieldByName("MetricsAddr"); !strings.HasSuffix(field.Tag.Get("default"), fmt.Sprint(":", daemonMetrics)) {
		t.Errorf("beep run serves metrics at %s", field.Tag.Get("default"))
	}
}

func TestWhereToAskForAnExplanation(t *testing.T) {
	for _, tt := range []struct{ socket, ready, want string }{
		{"", "/tmp/beep-ready", "/tmp/beep-ready.sock"},
		{"/run/explain", "/tmp/beep-ready", "/run/explain"},
	} {
		c, e := Controller{ExplainSocket: tt.socket, ReadyFile: tt.ready}, Explain{ExplainSocket: tt.socket, ReadyFile: tt.ready}
		if c.Socket() != tt.want || e.Socket() != tt.want {
			t.Errorf("%s and %s, want %s", c.Socket(), e.Socket(), tt.want)
		}
	}
	if err := (&Explain{ReadyFile: "ready", Output: "xml"}).Validate(); err == nil || !strings.Contains(err.Error(), "ready.sock") ||
		!strings.Contains(err.Error(), "want text or json") {
		t.Error(err)
	}
}

func TestNothingMayBeReserved(t *testing.T) {
	got, err := parseController(t, "--pin-dir=/p", "--node-name=a", "--reserved-ports=")
	if err != nil || got.Reserved() != nil {
		t.Errorf("%v, %v", got.Reserved(), err)
	}
}
