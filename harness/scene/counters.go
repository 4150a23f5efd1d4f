// SPDX-License-Identifier: Apache-2.0

package scene

import (
	"fmt"
	"os"
	"strconv"
	"strings"
)

// Counters are the kernel's own counters of a namespace, of /proc/net/snmp, snmp6 and netstat:
// Tcp.RetransSegs, Udp6.InCsumErrors, TcpExt.TCPDSACKRecv.
type Counters map[string]int64

// Counters reads those of a host or pod.
func (s *Scene) Counters(name string) Counters {
	s.tb.Helper()
	counters := Counters{}
	err := s.NS(name).Do(func() error {
		files := map[string]func(Counters, string) error{"snmp": parseSNMP, "snmp6": parseSNMP6, "netstat": parseSNMP}
		for file, parse := range files {
			// Not /proc/net, which is the main thread's.
			text, err := os.ReadFile("/proc/thread-self/net/" + file)
			if err != nil {
				return err
			}
			if err := parse(counters, string(text)); err != nil {
				return fmt.Errorf("%s: %w", file, err)
			}
		}
		return nil
	})
	if err != nil {
		s.tb.Fatalf("read the counters of %s: %v", name, err)
	}
	return counters
}

// ChecksumErrors are the packets with a wrong checksum that each namespace has met, by "NAME COUNTER". It is empty
// where all is well.
func (s *Scene) ChecksumErrors() map[string]int64 {
	s.tb.Helper()
	errs := map[string]int64{}
	for _, member := range s.Members() {
		if member.LAN {
			continue
		}
		for counter, value := range s.Counters(member.Name) {
			if value != 0 && (strings.HasSuffix(counter, "CsumErrors") || strings.HasSuffix(counter, "InHdrErrors")) {
				errs[member.Name+" "+counter] = value
			}
		}
	}
	return errs
}

// parseSNMP reads pairs of lines: "Tcp: NAME…", "Tcp: VALUE…".
func parseSNMP(into Counters, text string) error {
	lines := strings.Split(strings.TrimSpace(text), "\n")
	for i := 0; i+1 < len(lines); i += 2 {
		names, values := strings.Fields(lines[i]), strings.Fields(lines[i+1])
		if len(names) != len(values) || names[0] != values[0] {
			return fmt.Errorf("%q does not describe %q", lines[i], lines[i+1])
		}
		for j := 1; j < len(names); j++ {
			value, err := strconv.ParseInt(values[j], 10, 64)
			if err != nil {
				return err
			}
			into[strings.TrimSuffix(names[0], ":")+"."+names[j]] = value
		}
	}
	return nil
}

// parseSNMP6 reads lines such as "Udp6InCsumErrors 0".
func parseSNMP6(into Counters, text string) error {
	for line := range strings.Lines(text) {
		fields := strings.Fields(line)
		if len(fields) != 2 {
			continue
		}
		value, err := strconv.ParseInt(fields[1], 10, 64)
		if err != nil {
			return err
		}
		layer, name, _ := strings.Cut(fields[0], "6")
		into[layer+"6."+name] = value
	}
	return nil
}
