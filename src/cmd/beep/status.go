// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"net/netip"
	"strings"
	"time"

	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/datapath/attach"
	"github.com/beep-lb/beep/src/datapath/maps"
	"github.com/beep-lb/beep/src/datapath/pinfs"
	"github.com/beep-lb/beep/src/netdev"
)

type statusCommand struct{ config.Inspect }

// statusOutput is `beep status -o json`.
type statusOutput struct {
	// Healthy is what the exit code says: an uplink is attached, and none lacks one of its programs. The pins do not
	// tell which uplinks a daemon waits for; its /readyz does.
	Healthy bool `json:"healthy"`
	// Problems say what is not as it should be; a daemon that does not run is one, but the node is healthy
	// without it as long as no uplink goes away.
	Problems []string `json:"problems"`
	// Daemon says that a process holds the pin directory's lock.
	Daemon  bool           `json:"daemon"`
	Uplinks []uplinkOutput `json:"uplinks"`
	// Underlay are this node's own tunnel addresses.
	Underlay []netip.Addr `json:"underlay"`
	Peers    int          `json:"peers"`
	Targets  int          `json:"targets"`
	Fronts   int          `json:"fronts"`
	// Endpoints counts each once for every front that it serves.
	Endpoints int         `json:"endpoints"`
	Maps      []mapOutput `json:"maps"`
	// Version is this tool's; ABI is the layout of the maps, which the tool shares.
	Version string `json:"version"`
	ABI     uint32 `json:"abi"`
}

// uplinkOutput is a device that has a pinned link.
type uplinkOutput struct {
	// Device is its name now; "" if it is gone.
	Device  string `json:"device"`
	Ifindex int    `json:"ifindex"`
	// Ingress and Egress say that the program of that side is attached.
	Ingress bool `json:"ingress"`
	Egress  bool `json:"egress"`
	// Since is when the older of the two programs was put there.
	Since time.Time `json:"since"`
	// Programs are their ids in the kernel, as bpftool shows them.
	Programs []uint32 `json:"programs"`
}

func (u uplinkOutput) attached() bool { return u.Ingress && u.Egress }

// mapOutput is how full a map is.
type mapOutput struct {
	Map     string `json:"map"`
	Entries uint32 `json:"entries"`
	Max     uint32 `json:"max"`
	// MemoryBytes is the kernel's own count.
	MemoryBytes uint64 `json:"memoryBytes"`
	// Fixed says that no flag sizes the map, and that all of its rows are always in use.
	Fixed bool `json:"fixed"`
}

func (s *statusCommand) Run(c console) error {
	var out statusOutput
	err := read(s.PinDir, func(dir *pinfs.Dir, kernel *maps.Kernel) (err error) {
		out, err = look(dir, kernel)
		return err
	})
	if err != nil {
		return err
	}
	if s.JSON() {
		err = c.json(out)
	} else {
		err = out.print(c, time.Now())
	}
	if err == nil && !out.Healthy {
		return errUnhealthy
	}
	return err
}

// look gathers everything and judges it.
func look(dir *pinfs.Dir, kernel *maps.Kernel) (out statusOutput, err error) {
	out = statusOutput{Version: version, Problems: []string{}}
	if out.Daemon, err = locked(dir); err != nil {
		return out, err
	}
	if out.Uplinks, err = attachedUplinks(dir); err != nil {
		return out, err
	}
	if err := out.count(kernel); err != nil {
		return out, err
	}
	out.judge()
	return out, nil
}

// locked says whether a daemon holds the lock. To ask is to take it for a moment, which `beep run` waits out.
func locked(dir *pinfs.Dir) (bool, error) {
	lock, err := dir.Lock()
	if errors.Is(err, pinfs.ErrLocked) {
		return true, nil
	}
	if err != nil {
		return false, err
	}
	return false, lock.Unlock()
}

// devices are those of this network namespace.
func devices() ([]netdev.Link, error) {
	host, err := netdev.Open()
	if err != nil {
		return nil, err
	}
	defer host.Close()
	return host.List()
}

// attachedUplinks lists the devices that have a pinned link, by ifindex.
func attachedUplinks(dir *pinfs.Dir) ([]uplinkOutput, error) {
	attachments, err := attach.Attached(dir)
	if err != nil {
		return nil, err
	}
	links, err := devices()
	if err != nil {
		return nil, err
	}
	uplinks := []uplinkOutput{}
	for _, a := range attachments {
		if last := len(uplinks) - 1; last < 0 || uplinks[last].Ifindex != a.Ifindex {
			uplinks = append(uplinks, uplinkOutput{Ifindex: a.Ifindex, Device: nameOf(links, a.Ifindex), Since: a.Since.UTC()})
		}
		uplink := &uplinks[len(uplinks)-1]
		switch a.Direction {
		case pinfs.Ingress:
			uplink.Ingress = !a.Severed
		case pinfs.Egress:
			uplink.Egress = !a.Severed
		}
		if a.Since.Before(uplink.Since) {
			uplink.Since = a.Since.UTC()
		}
		uplink.Programs = append(uplink.Programs, a.Program)
	}
	return uplinks, nil
}

// nameOf is the name of the device with that ifindex, or nothing.
func nameOf(links []netdev.Link, ifindex int) string {
	for _, link := range links {
		if link.Index == ifindex {
			return link.Name
		}
	}
	return ""
}

// count reads the maps.
func (s *statusOutput) count(kernel *maps.Kernel) error {
	settings, err := kernel.Config()
	if err != nil {
		return err
	}
	s.ABI = settings.ABI
	if s.Underlay, err = underlay(kernel); err != nil {
		return err
	}
	peers, err := kernel.Peers()
	if err != nil {
		return err
	}
	targets, err := kernel.Targets()
	if err != nil {
		return err
	}
	fronts, err := kernel.Fronts()
	if err != nil {
		return err
	}
	s.Peers, s.Targets, s.Fronts = len(peers), len(targets), len(fronts)
	for _, front := range fronts {
		s.Endpoints += int(front.Count)
	}
	fills, err := kernel.Fill()
	sized := kernel.Capacity().ByMap()
	for _, fill := range fills {
		_, flag := sized[fill.Map]
		s.Maps = append(s.Maps, mapOutput{fill.Map, fill.Entries, fill.Max, fill.Bytes, !flag})
	}
	return err
}

// judge decides whether the node is healthy, and says what is not.
func (s *statusOutput) judge() {
	s.Healthy = len(s.Uplinks) > 0
	switch {
	case s.Healthy:
	case s.Daemon:
		s.Problems = append(s.Problems, "no uplink is attached: the daemon waits for its uplinks to come back, see `ip link`")
	default:
		s.Problems = append(s.Problems, "no uplink is attached: run `beep run` or `beep load`")
	}
	for _, uplink := range s.Uplinks {
		if uplink.attached() {
			continue
		}
		s.Healthy = false
		s.Problems = append(s.Problems, fmt.Sprintf("uplink %s lacks programs: `beep run` attaches them again",
			uplinkName(uplink)))
	}
	if !s.Daemon {
		s.Problems = append(s.Problems, "no daemon is running: packets are forwarded, but an uplink that goes away stays away, "+
			"and idle flows stay: start `beep run`")
	}
}

func uplinkName(u uplinkOutput) string {
	if u.Device == "" {
		return fmt.Sprintf("ifindex %d (gone)", u.Ifindex)
	}
	return u.Device
}

func (s *statusOutput) print(c console, now time.Time) error {
	state := map[bool]string{true: "healthy", false: "not healthy"}[s.Healthy]
	daemon := map[bool]string{true: "running", false: "not running"}[s.Daemon]
	own := "none"
	if len(s.Underlay) > 0 {
		own = strings.Trim(fmt.Sprint(s.Underlay), "[]")
	}
	fmt.Fprintf(c.out, "status    %s\n", state)
	for _, problem := range s.Problems {
		fmt.Fprintf(c.out, "          %s\n", problem)
	}
	fmt.Fprintf(c.out, "daemon    %s\n", daemon)
	fmt.Fprintf(c.out, "version   %s, map layout %d\n", s.Version, s.ABI)
	fmt.Fprintf(c.out, "underlay  %s\n", own)
	fmt.Fprintf(c.out, "peers     %d\n", s.Peers)
	fmt.Fprintf(c.out, "targets   %d\n", s.Targets)
	fmt.Fprintf(c.out, "fronts    %d (endpoints: %d)\n\n", s.Fronts, s.Endpoints)
	if err := c.table("UPLINK IFINDEX INGRESS EGRESS SINCE AGE PROGRAMS", s.uplinkRows(now)); err != nil {
		return err
	}
	fmt.Fprintln(c.out)
	return c.table("MAP ROWS MAX FULL MEMORY", s.mapRows())
}

func (s *statusOutput) uplinkRows(now time.Time) [][]string {
	var rows [][]string
	side := map[bool]string{true: "attached", false: "missing"}
	for _, u := range s.Uplinks {
		var ids []string
		for _, id := range u.Programs {
			ids = append(ids, number(id))
		}
		rows = append(rows, []string{u.Device, number(u.Ifindex), side[u.Ingress], side[u.Egress],
			u.Since.Format(time.RFC3339), now.Sub(u.Since).Round(time.Second).String(), strings.Join(ids, ",")})
	}
	return rows
}

func (s *statusOutput) mapRows() [][]string {
	var rows [][]string
	for _, m := range s.Maps {
		full := "fixed"
		if !m.Fixed {
			full = fmt.Sprintf("%.0f%%", 100*float64(m.Entries)/float64(m.Max))
		}
		rows = append(rows, []string{m.Map, number(m.Entries), number(m.Max), full, size(m.MemoryBytes)})
	}
	return rows
}
