// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/alecthomas/kong"
	"github.com/google/go-cmp/cmp"
)

// parse reads args as `beep run` would, with only the given environment.
func parse(t *testing.T, env map[string]string, args ...string) (Datapath, error) {
	t.Helper()
	for name, value := range env {
		t.Setenv(name, value)
	}
	var d Datapath
	parser, err := kong.New(&d, kong.Name("beep"), kong.Exit(func(int) { t.Fatal("parser exits") }))
	if err != nil {
		t.Fatal(err)
	}
	_, err = parser.Parse(args)
	return d, err
}

func defaults() Datapath {
	return Datapath{
		PinDir:              "/sys/fs/bpf/beep",
		MaxFronts:           1024,
		EndpointsPerFront:   4,
		FlowTableMaxEntries: 65536,
		NodeAllowMaxEntries: 32,
		PodTargetsMax:       128,
		UDPIdleSweepSecs:    120,
		TCPIdleSweepSecs:    43200,
		UplinkIfaces:        Interfaces{"auto"},
		GenevePort:          6081,
		GeneveVNI:           48873,
		MetricsAddr:         "127.0.0.1:9962",
		LogLevel:            "info",
		LogFormat:           "text",
		NoEndpoints:         "drop",
	}
}

func TestDefaults(t *testing.T) {
	got, err := parse(t, nil, "--pin-dir", "/sys/fs/bpf/beep")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(defaults(), got); diff != "" {
		t.Errorf("defaults differ from the documented table (-want +got):\n%s", diff)
	}
	if !got.AutoUplinks() || got.Uplinks() != nil {
		t.Errorf("uplinks %v, want auto", got.UplinkIfaces)
	}
	if got.UDPIdle() != 2*time.Minute || got.TCPIdle() != 12*time.Hour || got.Level() != slog.LevelInfo {
		t.Errorf("UDP idle %s, TCP idle %s, level %s", got.UDPIdle(), got.TCPIdle(), got.Level())
	}
}

// TestFlagAndEnvAgree sets every option once by flag and once by env, to a value that is not its default.
func TestFlagAndEnvAgree(t *testing.T) {
	options := []struct{ flag, env, value string }{
		{"pin-dir", "BEEP_PIN_DIR", "/sys/fs/bpf/rig"},
		{"max-fronts", "BEEP_MAX_FRONTS", "7"},
		{"endpoints-per-front", "BEEP_ENDPOINTS_PER_FRONT", "8"},
		{"flow-table-max-entries", "BEEP_FLOW_TABLE_MAX_ENTRIES", "2048"},
		{"node-allow-max-entries", "BEEP_NODE_ALLOW_MAX_ENTRIES", "9"},
		{"pod-targets-max-entries", "BEEP_POD_TARGETS_MAX_ENTRIES", "10"},
		{"udp-idle-sweep-secs", "BEEP_UDP_IDLE_SWEEP_SECS", "11"},
		{"tcp-idle-sweep-secs", "BEEP_TCP_IDLE_SWEEP_SECS", "12"},
		{"uplink-iface", "BEEP_UPLINK_IFACES", "eth0,wg0"},
		{"geneve-port", "BEEP_GENEVE_PORT", "6082"},
		{"geneve-vni", "BEEP_GENEVE_VNI", "13"},
		{"metrics-addr", "BEEP_METRICS_ADDR", "[::1]:9000"},
		{"log-level", "BEEP_LOG_LEVEL", "debug"},
		{"log-format", "BEEP_LOG_FORMAT", "json"},
	}
	env := map[string]string{}
	var args []string
	for _, o := range options {
		env[o.env] = o.value
		args = append(args, "--"+o.flag+"="+o.value)
	}
	byFlag, err := parse(t, nil, args...)
	if err != nil {
		t.Fatal(err)
	}
	want := Datapath{
		PinDir: "/sys/fs/bpf/rig", MaxFronts: 7, EndpointsPerFront: 8, FlowTableMaxEntries: 2048,
		NodeAllowMaxEntries: 9, PodTargetsMax: 10, UDPIdleSweepSecs: 11, TCPIdleSweepSecs: 12,
		UplinkIfaces: Interfaces{"eth0", "wg0"}, GenevePort: 6082, GeneveVNI: 13, MetricsAddr: "[::1]:9000",
		LogLevel: "debug", LogFormat: "json", NoEndpoints: "drop",
	}
	if diff := cmp.Diff(want, byFlag); diff != "" {
		t.Errorf("by flag (-want +got):\n%s", diff)
	}
	byEnv, err := parse(t, env)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, byEnv); diff != "" {
		t.Errorf("by env (-want +got):\n%s", diff)
	}
	// A flag replaces its env; a list is not mixed from both.
	both, err := parse(t, nil, "--uplink-iface=eth1", "--uplink-iface=eth2", "--max-fronts=3")
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(Interfaces{"eth1", "eth2"}, both.UplinkIfaces); diff != "" || both.MaxFronts != 3 {
		t.Errorf("flag over env: %v, %d fronts", both.UplinkIfaces, both.MaxFronts)
	}
}

func TestValidate(t *testing.T) {
	seed := uint64(1)
	tests := []struct {
		name string
		edit func(*Datapath)
		want string // empty: valid
	}{
		{"the defaults are valid", func(*Datapath) {}, ""},
		{"metrics may be off", func(d *Datapath) { d.MetricsAddr = "" }, ""},
		{"metrics on every address", func(d *Datapath) { d.MetricsAddr = ":9962" }, ""},
		{"a seed goes with a fixture", func(d *Datapath) {
			d.PinDir, d.Fixtures, d.FlowHashSeed = "/sys/fs/bpf/rig", []string{"node=192.0.2.1"}, &seed
		}, ""},
		{"no pin directory", func(d *Datapath) { d.PinDir = "" },
			`--pin-dir (BEEP_PIN_DIR) "": is required: name a directory on bpffs, as /sys/fs/bpf/beep`},
		{"a relative pin directory", func(d *Datapath) { d.PinDir = "beep" },
			`--pin-dir (BEEP_PIN_DIR) "beep": want an absolute path on bpffs, as /sys/fs/bpf/beep`},
		{"a fixture in the controller's directory", func(d *Datapath) {
			d.PinDir, d.Fixtures = "/sys/fs/bpf//x/../beep/", []string{"node=192.0.2.1"}
		}, `--pin-dir (BEEP_PIN_DIR) "/sys/fs/bpf//x/../beep/": belongs to the controller, and a --fixture run would prune its fronts: use another directory`},
		{"a fixture below the controller's directory", func(d *Datapath) {
			d.PinDir, d.Fixtures = "/sys/fs/bpf/beep/maps", []string{"node=192.0.2.1"}
		}, `--pin-dir (BEEP_PIN_DIR) "/sys/fs/bpf/beep/maps": belongs to the controller, and a --fixture run would prune its fronts: use another directory`},
		{"a fixture beside the controller's directory", func(d *Datapath) {
			d.PinDir, d.Fixtures = "/sys/fs/bpf/beep2", []string{"node=192.0.2.1"}
		}, ""},
		{"a seed without a fixture", func(d *Datapath) { d.FlowHashSeed = &seed },
			`--flow-hash-seed "1": only goes with --fixture: a cluster's seed comes from the controller`},
		{"no fronts", func(d *Datapath) { d.MaxFronts = 0 }, `--max-fronts (BEEP_MAX_FRONTS) "0": out of range, want 1..65536`},
		{"fewer than no fronts", func(d *Datapath) { d.MaxFronts = -1 }, `--max-fronts (BEEP_MAX_FRONTS) "-1": out of range, want 1..65536`},
		{"too many fronts", func(d *Datapath) { d.MaxFronts = 65537 }, `--max-fronts (BEEP_MAX_FRONTS) "65537": out of range, want 1..65536`},
		{"no endpoints", func(d *Datapath) { d.EndpointsPerFront = 0 },
			`--endpoints-per-front (BEEP_ENDPOINTS_PER_FRONT) "0": out of range, want 1..4096`},
		{"too many endpoints in all", func(d *Datapath) { d.MaxFronts, d.EndpointsPerFront = 65536, 65 },
			`--endpoints-per-front (BEEP_ENDPOINTS_PER_FRONT) "65": times --max-fronts 65536 is over 4194304 endpoints: lower one of the two`},
		{"a small flow table", func(d *Datapath) { d.FlowTableMaxEntries = 1023 },
			`--flow-table-max-entries (BEEP_FLOW_TABLE_MAX_ENTRIES) "1023": out of range, want 1024..16777216`},
		{"a huge flow table", func(d *Datapath) { d.FlowTableMaxEntries = 1<<24 + 1 },
			`--flow-table-max-entries (BEEP_FLOW_TABLE_MAX_ENTRIES) "16777217": out of range, want 1024..16777216`},
		{"no peers", func(d *Datapath) { d.NodeAllowMaxEntries = 0 },
			`--node-allow-max-entries (BEEP_NODE_ALLOW_MAX_ENTRIES) "0": out of range, want 1..65536`},
		{"no targets", func(d *Datapath) { d.PodTargetsMax = 0 },
			`--pod-targets-max-entries (BEEP_POD_TARGETS_MAX_ENTRIES) "0": out of range, want 1..1048576`},
		{"UDP flows swept at once", func(d *Datapath) { d.UDPIdleSweepSecs = 0 },
			`--udp-idle-sweep-secs (BEEP_UDP_IDLE_SWEEP_SECS) "0": out of range, want 1..86400`},
		{"TCP flows kept for ever", func(d *Datapath) { d.TCPIdleSweepSecs = 2592001 },
			`--tcp-idle-sweep-secs (BEEP_TCP_IDLE_SWEEP_SECS) "2592001": out of range, want 1..2592000`},
		{"no port", func(d *Datapath) { d.GenevePort = 65536 }, `--geneve-port (BEEP_GENEVE_PORT) "65536": out of range, want 1..65535`},
		{"a VNI of 25 bits", func(d *Datapath) { d.GeneveVNI = 1 << 24 }, `--geneve-vni (BEEP_GENEVE_VNI) "16777216": out of range, want 1..16777215`},
		{"a host name for metrics", func(d *Datapath) { d.MetricsAddr = "localhost:9962" },
			`--metrics-addr (BEEP_METRICS_ADDR) "localhost:9962": want ADDRESS:PORT, as 127.0.0.1:9962 or [::1]:9962 or :9962, or nothing to disable`},
		{"no port for metrics", func(d *Datapath) { d.MetricsAddr = "127.0.0.1" },
			`--metrics-addr (BEEP_METRICS_ADDR) "127.0.0.1": want ADDRESS:PORT, as 127.0.0.1:9962 or [::1]:9962 or :9962, or nothing to disable`},
		{"port zero for metrics", func(d *Datapath) { d.MetricsAddr = "127.0.0.1:0" },
			`--metrics-addr (BEEP_METRICS_ADDR) "127.0.0.1:0": want ADDRESS:PORT, as 127.0.0.1:9962 or [::1]:9962 or :9962, or nothing to disable`},
		{"a log level of another logger", func(d *Datapath) { d.LogLevel = "trace" },
			`--log-level (BEEP_LOG_LEVEL) "trace": want debug, info, warn or error`},
		{"a log format of another logger", func(d *Datapath) { d.LogFormat = "xml" },
			`--log-format (BEEP_LOG_FORMAT) "xml": want text or json`},
		{"reject", func(d *Datapath) { d.NoEndpoints = "reject" }, ""},
		{"an unknown verdict", func(d *Datapath) { d.NoEndpoints = "" }, `--no-endpoints (BEEP_NO_ENDPOINTS) "": want drop or reject`},
		{"a bad fixture", func(d *Datapath) { d.PinDir, d.Fixtures = "/sys/fs/bpf/rig", []string{"node=here"} },
			`--fixture "node=here": node address "here": want an IP address, as 192.0.2.1`},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			d := defaults()
			test.edit(&d)
			checkError(t, d.Validate(), test.want)
		})
	}
}

func TestUplinkNames(t *testing.T) {
	const flag = `--uplink-iface (BEEP_UPLINK_IFACES) `
	tests := []struct{ value, want string }{
		{"eth0", ""},
		{"auto", ""},
		{"wg0,eth0.100,bond0", ""},
		{"fifteen-bytes-x", ""},
		{"a,b,c,d,e,f,g,h", ""},
		{"", flag + "\"\": is empty: give the name that `ip link` shows"},
		{"eth0,,eth1", flag + "\"\": is empty: give the name that `ip link` shows"},
		{"eth0,", flag + "\"\": is empty: give the name that `ip link` shows"},
		{"eth 0", flag + "\"eth 0\": contains white space: give the name that `ip link` shows"},
		{"eth0, eth1", flag + "\" eth1\": contains white space: give the name that `ip link` shows"},
		{"eth0\n", flag + "\"eth0\\n\": contains white space: give the name that `ip link` shows"},
		{"eth0:1", flag + "\"eth0:1\": contains ':' or '/': give the name that `ip link` shows"},
		{"../eth0", flag + "\"../eth0\": contains ':' or '/': give the name that `ip link` shows"},
		{".", flag + "\".\": is no interface name: give the name that `ip link` shows"},
		{"..", flag + "\"..\": is no interface name: give the name that `ip link` shows"},
		{"sixteen-bytes-xx", flag + "\"sixteen-bytes-xx\": is longer than 15 bytes: give the name that `ip link` shows"},
		{"eth0,eth1,eth0", flag + `"eth0": named twice: name each uplink once`},
		{"eth0,auto", flag + `"auto": does not go with other names: name the uplinks, or say auto alone`},
		{"a,b,c,d,e,f,g,h,i", flag + `"a,b,c,d,e,f,g,h,i": 9 uplinks, at most 8 are served: name fewer`},
	}
	for _, test := range tests {
		t.Run(test.value, func(t *testing.T) {
			_, err := parse(t, nil, "--pin-dir=/sys/fs/bpf/beep", "--uplink-iface="+test.value)
			checkError(t, err, test.want)
			_, err = parse(t, map[string]string{"BEEP_UPLINK_IFACES": test.value}, "--pin-dir=/sys/fs/bpf/beep")
			checkError(t, err, test.want)
		})
	}
}

func TestValidateReportsEverythingAtOnce(t *testing.T) {
	_, err := parse(t, nil, "--max-fronts=-5", "--geneve-vni=0", "--uplink-iface=a:b", "--uplink-iface=lo/",
		"--fixture=peer=nobody", "--fixture=front=tcp/192.0.2.1:80,10.42.0.5:0", "--no-endpoints=refuse", "--flow-hash-seed=3")
	checkError(t, err, strings.Join([]string{
		`--pin-dir (BEEP_PIN_DIR) "": is required: name a directory on bpffs, as /sys/fs/bpf/beep`,
		`--max-fronts (BEEP_MAX_FRONTS) "-5": out of range, want 1..65536`,
		`--geneve-vni (BEEP_GENEVE_VNI) "0": out of range, want 1..16777215`,
		"--uplink-iface (BEEP_UPLINK_IFACES) \"a:b\": contains ':' or '/': give the name that `ip link` shows",
		"--uplink-iface (BEEP_UPLINK_IFACES) \"lo/\": contains ':' or '/': give the name that `ip link` shows",
		`--fixture "peer=nobody": node address "nobody": want an IP address, as 192.0.2.1`,
		`--fixture "front=tcp/192.0.2.1:80,10.42.0.5:0": endpoint "10.42.0.5:0": want a unicast address without a zone and a port from 1 to 65535`,
		`--no-endpoints (BEEP_NO_ENDPOINTS) "refuse": want drop or reject`,
	}, "\n"))
}

func TestProblemsAreNotUsage(t *testing.T) {
	var problems Problems
	_, err := parse(t, nil, "--max-fronts=0", "--pin-dir=beep")
	if !errors.As(err, &problems) || len(problems) != 2 {
		t.Errorf("values: %#v", err)
	}
	problems = nil
	for _, args := range [][]string{{"--no-such-flag"}, {"--max-fronts=many"}} {
		if _, err := parse(t, nil, args...); err == nil || errors.As(err, &problems) {
			t.Errorf("usage %v: %#v", args, err)
		}
	}
}

func TestSeed(t *testing.T) {
	d, err := parse(t, nil, "--pin-dir=/sys/fs/bpf/rig", "--fixture=node=192.0.2.1", "--flow-hash-seed=258")
	if err != nil {
		t.Fatal(err)
	}
	if want := [16]byte{2, 1}; d.Seed() != want {
		t.Errorf("seed %x, want %x", d.Seed(), want)
	}
	state, err := d.FixtureState()
	if err != nil || state.Seed != d.Seed() || state.Underlay4.String() != "192.0.2.1" {
		t.Errorf("state %+v, error %v", state, err)
	}
	d.FlowHashSeed = nil
	if a, b := d.Seed(), d.Seed(); a == b {
		t.Errorf("two random seeds are equal: %x", a)
	}
}

func TestInspect(t *testing.T) {
	tests := []struct {
		args []string
		json bool
		want string
	}{
		{[]string{"--pin-dir=/sys/fs/bpf/beep"}, false, ""},
		{[]string{"--pin-dir=/sys/fs/bpf/beep", "-o", "json"}, true, ""},
		{[]string{"--pin-dir=/sys/fs/bpf/beep", "--output=text"}, false, ""},
		{[]string{"-o", "yaml"}, false, `--pin-dir (BEEP_PIN_DIR) "": is required: name a directory on bpffs, as /sys/fs/bpf/beep` +
			"\n" + `--output "yaml": want text or json`},
	}
	for _, test := range tests {
		var inspect Inspect
		parser, err := kong.New(&inspect)
		if err != nil {
			t.Fatal(err)
		}
		_, err = parser.Parse(test.args)
		checkError(t, err, test.want)
		if inspect.JSON() != test.json {
			t.Errorf("%v: json %v, want %v", test.args, inspect.JSON(), test.json)
		}
	}
}

// checkError compares the whole text of an error; empty means none.
func checkError(t *testing.T, err error, want string) {
	t.Helper()
	got := ""
	if err != nil {
		got = err.Error()
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("error (-want +got):\n%s", diff)
	}
}
