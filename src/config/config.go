// SPDX-License-Identifier: Apache-2.0

// Package config is what an operator may ask of beep: one struct a command, filled from flags and
// environment by kong's struct tags. Invariant: no globals and no look at the machine, so a struct that
// passed Validate holds only values that every later package may use unchecked.
package config

import (
	"crypto/rand"
	"encoding/binary"
	"fmt"
	"log/slog"
	"path/filepath"
	"strings"
	"time"

	"github.com/beep-lb/beep/src/model"
)

// ControllerPinDir is the pin directory of a node that is run by the controller; a fixture run would prune
// the controller's fronts there, so Validate refuses the pair.
const ControllerPinDir = "/sys/fs/bpf/beep"

// MaxUplinks is the largest number of uplinks one node serves.
const MaxUplinks = 8

// Auto is the value of --uplink-iface that asks for the devices of the node's addresses and default routes.
const Auto = "auto"

// Datapath holds the flags of `beep run` and `beep load`. Every number is an int so that Validate, and not
// the parser, reports one that is negative or too large, together with every other problem.
type Datapath struct {
	PinDir string `name:"pin-dir" env:"BEEP_PIN_DIR" placeholder:"DIR" help:"Directory on bpffs that holds the pinned maps and links (required)."`

	MaxFronts           int `name:"max-fronts" env:"BEEP_MAX_FRONTS" default:"1024" placeholder:"N" help:"Fronts (node address, protocol, port) that fit."`
	EndpointsPerFront   int `name:"endpoints-per-front" env:"BEEP_ENDPOINTS_PER_FRONT" default:"4" placeholder:"N" help:"Endpoints a front, on average."`
	FlowTableMaxEntries int `name:"flow-table-max-entries" env:"BEEP_FLOW_TABLE_MAX_ENTRIES" default:"65536" placeholder:"N" help:"Rows of established flows, a quarter of them for UDP."`
	NodeAllowMaxEntries int `name:"node-allow-max-entries" env:"BEEP_NODE_ALLOW_MAX_ENTRIES" default:"32" placeholder:"N" help:"Peers whose tunnels are accepted."`
	PodTargetsMax       int `name:"pod-targets-max-entries" env:"BEEP_POD_TARGETS_MAX_ENTRIES" default:"128" placeholder:"N" help:"Pod sockets of this node that tunnels may deliver to."`

	UDPIdleSweepSecs int `name:"udp-idle-sweep-secs" env:"BEEP_UDP_IDLE_SWEEP_SECS" default:"120" placeholder:"SECONDS" help:"Idle seconds after which a UDP flow is swept."`
	TCPIdleSweepSecs int `name:"tcp-idle-sweep-secs" env:"BEEP_TCP_IDLE_SWEEP_SECS" default:"43200" placeholder:"SECONDS" help:"Idle seconds after which a TCP flow is swept."`

	UplinkIfaces Interfaces `name:"uplink-iface" env:"BEEP_UPLINK_IFACES" default:"auto" placeholder:"NAME" help:"Device that clients or peers reach this node through (repeatable or comma-separated, at most 8), or auto."`

	GenevePort int `name:"geneve-port" env:"BEEP_GENEVE_PORT" default:"6081" placeholder:"PORT" help:"UDP port of the tunnel between nodes."`
	GeneveVNI  int `name:"geneve-vni" env:"BEEP_GENEVE_VNI" default:"48873" placeholder:"VNI" help:"Geneve network identifier; the same on every node."`

	Fixtures     []string `name:"fixture" sep:"none" placeholder:"FIXTURE" help:"Fill the maps from the command line instead of a controller (repeatable): node=, peer=, target=, front=, source=."`
	FlowHashSeed *uint64  `name:"flow-hash-seed" placeholder:"SEED" help:"Seed of the flow hash of a fixture run; random if omitted."`

	MetricsAddr  string `name:"metrics-addr" env:"BEEP_METRICS_ADDR" default:"127.0.0.1:9962" placeholder:"ADDRESS:PORT" help:"Where metrics are served; empty disables."`
	LogLevel     string `name:"log-level" env:"BEEP_LOG_LEVEL" default:"info" placeholder:"LEVEL" help:"debug, info, warn or error."`
	LogFormat    string `name:"log-format" env:"BEEP_LOG_FORMAT" default:"text" placeholder:"FORMAT" help:"text or json."`
	CountPackets bool   `name:"count-packets" env:"BEEP_COUNT_PACKETS" help:"Count every packet that is forwarded, and its bytes, for metrics; without it only new flows and drops are."`
	NoEndpoints  string `name:"no-endpoints" env:"BEEP_NO_ENDPOINTS" default:"drop" placeholder:"VERDICT" help:"What a new flow to a front without endpoints meets: drop (silently) or reject (port unreachable)."`
}

// Interfaces is a list of device names. Each use of the flag appends, and commas separate, so that the flag
// and its env mean the same; unlike kong's own splitting, empty names are kept for Validate to refuse.
type Interfaces []string

// UnmarshalText appends the comma-separated names in text. It never fails: Validate judges the names.
func (i *Interfaces) UnmarshalText(text []byte) error {
	*i = append(*i, strings.Split(string(text), ",")...)
	return nil
}

// AutoUplinks says whether the uplinks are to be found on the node instead of named.
func (d *Datapath) AutoUplinks() bool {
	return len(d.UplinkIfaces) == 0 || len(d.UplinkIfaces) == 1 && d.UplinkIfaces[0] == Auto
}

// Uplinks returns the named uplinks in the operator's order, or nil if they are to be found (AutoUplinks).
func (d *Datapath) Uplinks() []string {
	if d.AutoUplinks() {
		return nil
	}
	return d.UplinkIfaces
}

// UDPIdle is the idle time after which a UDP flow is swept.
func (d *Datapath) UDPIdle() time.Duration { return time.Duration(d.UDPIdleSweepSecs) * time.Second }

// TCPIdle is the idle time after which a TCP flow is swept.
func (d *Datapath) TCPIdle() time.Duration { return time.Duration(d.TCPIdleSweepSecs) * time.Second }

// Reject says that a new flow to a front without endpoints is answered and not dropped in silence.
func (d *Datapath) Reject() bool { return d.NoEndpoints == "reject" }

// FixtureRun says that the maps are filled from --fixture instead of by a controller.
func (d *Datapath) FixtureRun() bool { return len(d.Fixtures) > 0 }

// FixtureState is what a fixture run should hold, its Seed included. It fails on what Validate reports of
// the fixtures.
func (d *Datapath) FixtureState() (model.Desired, error) {
	desired, err := ParseFixtures(d.Fixtures)
	if err != nil {
		return model.Desired{}, err
	}
	desired.Seed = d.Seed()
	return desired, nil
}

// Seed expands --flow-hash-seed to the sixteen bytes of model.Desired: little-endian in the first eight, zero
// after, so the same flag gives the same hash on every node of a rig. Without the flag it is random.
func (d *Datapath) Seed() [16]byte {
	var seed [16]byte
	if d.FlowHashSeed == nil {
		rand.Read(seed[:]) // never fails, says its documentation
		return seed
	}
	binary.LittleEndian.PutUint64(seed[:], *d.FlowHashSeed)
	return seed
}

// Level is --log-level for log/slog.
func (d *Datapath) Level() slog.Level {
	return levels[d.LogLevel]
}

var levels = map[string]slog.Level{
	"debug": slog.LevelDebug, "info": slog.LevelInfo, "warn": slog.LevelWarn, "error": slog.LevelError,
}

// Inspect holds the flags that every reading command shares (`beep status`, `fronts`, `flows`, …).
type Inspect struct {
	PinDir string `name:"pin-dir" env:"BEEP_PIN_DIR" placeholder:"DIR" help:"Directory on bpffs that holds the pinned maps and links (required)."`
	Output string `name:"output" short:"o" default:"text" placeholder:"FORMAT" help:"text for people, json for programs."`
}

// Uninstall holds the flags of `beep uninstall`.
type Uninstall struct {
	PinDir string `name:"pin-dir" env:"BEEP_PIN_DIR" placeholder:"DIR" help:"Directory on bpffs that holds the pinned maps and links (required)."`
	Stay   bool   `name:"stay" help:"Go on running until SIGTERM: a DaemonSet counts a node as done while its pod runs."`
}

// JSON says that the output is for programs.
func (i *Inspect) JSON() bool { return i.Output == "json" }

// isControllerDir says whether dir is the controller's pin directory or lies below it.
func isControllerDir(dir string) bool {
	rel, err := filepath.Rel(ControllerPinDir, filepath.Clean(dir))
	return err == nil && rel != ".." && !strings.HasPrefix(rel, "../")
}

// span is an inclusive range of a number.
type span struct{ low, high int }

func (s span) String() string { return fmt.Sprintf("%d..%d", s.low, s.high) }
