// SPDX-License-Identifier: Apache-2.0

package config

import (
	"errors"
	"fmt"
	"net"
	"net/netip"
	"path/filepath"
	"strconv"
	"strings"
	"unicode"
)

// maxInterfaceName is IFNAMSIZ less the closing NUL (include/uapi/linux/if.h), in bytes.
const maxInterfaceName = 15

// maxEndpoints bounds fronts times endpoints a front: FRONT_ENDPOINTS has twice as many rows, for the swap
// of generations, and a typing error should not ask the kernel for gigabytes.
const maxEndpoints = 1 << 22

// Problems are all that is wrong with an operator's input, one line each. The parser's own errors (an unknown
// flag, a word for a number) are of another type, so errors.As tells usage from values.
type Problems []error

// Error is one line a problem.
func (p Problems) Error() string { return errors.Join(p...).Error() }

// Unwrap gives the problems to errors.Is and errors.As.
func (p Problems) Unwrap() []error { return p }

// orNil is the problems as an error, or nil if there is none.
func (p Problems) orNil() error {
	if len(p) == 0 {
		return nil
	}
	return p
}

// add notes a problem of the flag: its value, what is wrong with it, and what to do.
func (p *Problems) add(flag, env, value, remedy string) {
	name := "--" + flag
	if env != "" {
		name += " (" + env + ")"
	}
	*p = append(*p, fmt.Errorf("%s %q: %s", name, value, remedy))
}

// number checks the bounds of one number.
func (p *Problems) number(flag, env string, value int, bounds span) {
	if value < bounds.low || value > bounds.high {
		p.add(flag, env, strconv.Itoa(value), fmt.Sprintf("out of range, want %s", bounds))
	}
}

// Validate reports every problem of the flags at once, one line each that names the flag and its env, the
// value, and the remedy; the error is of type Problems. kong calls it by itself, after parsing.
func (d *Datapath) Validate() error {
	var p Problems
	p.pinDir(d.PinDir)
	if d.FixtureRun() && isControllerDir(d.PinDir) {
		p.add("pin-dir", "BEEP_PIN_DIR", d.PinDir,
			"belongs to the controller, and a --fixture run would prune its fronts: use another directory")
	}
	d.checkNumbers(&p)
	p.uplinks(d.UplinkIfaces)
	_, faults := parseFixtures(d.Fixtures)
	p = append(p, faults...)
	if d.FlowHashSeed != nil && !d.FixtureRun() {
		p.add("flow-hash-seed", "", strconv.FormatUint(*d.FlowHashSeed, 10),
			"only goes with --fixture: a cluster's seed comes from the controller")
	}
	p.metricsAddr(d.MetricsAddr)
	p.logging(d.LogLevel, d.LogFormat)
	if d.NoEndpoints != "drop" && !d.Reject() {
		p.add("no-endpoints", "BEEP_NO_ENDPOINTS", d.NoEndpoints, "want drop or reject")
	}
	return p.orNil()
}

// checkNumbers checks the bounds of every number.
func (d *Datapath) checkNumbers(p *Problems) {
	p.number("max-fronts", "BEEP_MAX_FRONTS", d.MaxFronts, span{1, 65536})
	p.number("endpoints-per-front", "BEEP_ENDPOINTS_PER_FRONT", d.EndpointsPerFront, span{1, 4096})
	// Divided, not multiplied: the product of two wild numbers could overflow.
	if d.MaxFronts > 0 && d.EndpointsPerFront > maxEndpoints/d.MaxFronts {
		p.add("endpoints-per-front", "BEEP_ENDPOINTS_PER_FRONT", strconv.Itoa(d.EndpointsPerFront),
			fmt.Sprintf("times --max-fronts %d is over %d endpoints: lower one of the two", d.MaxFronts, maxEndpoints))
	}
	p.number("flow-table-max-entries", "BEEP_FLOW_TABLE_MAX_ENTRIES", d.FlowTableMaxEntries, span{1024, 1 << 24})
	p.number("node-allow-max-entries", "BEEP_NODE_ALLOW_MAX_ENTRIES", d.NodeAllowMaxEntries, span{1, 65536})
	p.number("pod-targets-max-entries", "BEEP_POD_TARGETS_MAX_ENTRIES", d.PodTargetsMax, span{1, 1 << 20})
	p.number("udp-idle-sweep-secs", "BEEP_UDP_IDLE_SWEEP_SECS", d.UDPIdleSweepSecs, span{1, 86400})
	p.number("tcp-idle-sweep-secs", "BEEP_TCP_IDLE_SWEEP_SECS", d.TCPIdleSweepSecs, span{1, 30 * 86400})
	p.number("geneve-port", "BEEP_GENEVE_PORT", d.GenevePort, span{1, 65535})
	// The VNI has 24 bits (RFC 8926, section 3.4); zero is what a sender without a network writes.
	p.number("geneve-vni", "BEEP_GENEVE_VNI", d.GeneveVNI, span{1, 1<<24 - 1})
}

// Validate reports every problem of the flags at once, in the form of Datapath.Validate.
func (i *Inspect) Validate() error {
	var p Problems
	p.pinDir(i.PinDir)
	p.output(i.Output)
	return p.orNil()
}

// Validate checks the flag of uninstall.
func (u *Uninstall) Validate() error {
	var p Problems
	p.pinDir(u.PinDir)
	return p.orNil()
}

func (p *Problems) output(format string) {
	if format != "text" && format != "json" {
		p.add("output", "", format, "want text or json")
	}
}

// pinDir checks the form of the path; whether it is on bpffs is for package pinfs to see.
func (p *Problems) pinDir(dir string) {
	switch {
	case dir == "":
		p.add("pin-dir", "BEEP_PIN_DIR", dir, "is required: name a directory on bpffs, as "+ControllerPinDir)
	case !filepath.IsAbs(dir):
		p.add("pin-dir", "BEEP_PIN_DIR", dir, "want an absolute path on bpffs, as "+ControllerPinDir)
	}
}

// metricsAddr accepts nothing, or an IP literal (or no host, for every address) and a port.
func (p *Problems) metricsAddr(addr string) {
	if addr == "" {
		return
	}
	const remedy = "want ADDRESS:PORT, as 127.0.0.1:9962 or [::1]:9962 or :9962, or nothing to disable"
	host, port, err := net.SplitHostPort(addr)
	if err == nil && host != "" {
		_, err = netip.ParseAddr(host)
	}
	if n, portErr := strconv.ParseUint(port, 10, 16); err != nil || portErr != nil || n == 0 {
		p.add("metrics-addr", "BEEP_METRICS_ADDR", addr, remedy)
	}
}

// logging checks how much is logged, and how.
func (p *Problems) logging(level, format string) {
	if _, known := levels[level]; !known {
		p.add("log-level", "BEEP_LOG_LEVEL", level, "want debug, info, warn or error")
	}
	if format != "text" && format != "json" {
		p.add("log-format", "BEEP_LOG_FORMAT", format, "want text or json")
	}
}

// uplinks checks the names of the uplinks and their number.
func (p *Problems) uplinks(names []string) {
	const flag, env = "uplink-iface", "BEEP_UPLINK_IFACES"
	seen := map[string]bool{}
	for _, name := range names {
		switch fault := interfaceNameFault(name); {
		case fault != "":
			p.add(flag, env, name, fault+": give the name that `ip link` shows")
		case seen[name]:
			p.add(flag, env, name, "named twice: name each uplink once")
		case name == Auto && len(names) > 1:
			p.add(flag, env, name, "does not go with other names: name the uplinks, or say auto alone")
		}
		seen[name] = true
	}
	if len(names) > MaxUplinks {
		p.add(flag, env, strings.Join(names, ","),
			fmt.Sprintf("%d uplinks, at most %d are served: name fewer", len(names), MaxUplinks))
	}
}

// interfaceNameFault says what the kernel's dev_valid_name (net/core/dev.c) has against a name, or nothing.
func interfaceNameFault(name string) string {
	switch {
	case name == "":
		return "is empty"
	case name == "." || name == "..":
		return "is no interface name"
	case len(name) > maxInterfaceName:
		return fmt.Sprintf("is longer than %d bytes", maxInterfaceName)
	case strings.ContainsFunc(name, unicode.IsSpace):
		return "contains white space"
	case strings.ContainsAny(name, ":/"):
		return "contains ':' or '/'"
	}
	return ""
}
