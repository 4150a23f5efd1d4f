// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/prometheus/client_golang/prometheus"

// What beep measures; dashboards and alerts know these names, so they are changed like an interface. Counters of
// drops live in the kernel and survive a restart of the daemon.
var (
	dropPackets = describe("drops_packets_total", "Packets dropped.", "reason", "direction")
	dropBytes   = describe("drops_bytes_total", "Bytes of the packets dropped, link layer included.", "reason", "direction")
	flows       = describe("flows", "Flows with a row on this node.", "state", "table")
	mapEntries  = describe("map_entries", "Rows in use.", "map")
	mapMax      = describe("map_max_entries", "Rows that fit.", "map")
	mapBytes    = describe("map_memory_bytes", "Memory of the map, as the kernel counts it.", "map")
	fronts      = describe("fronts", "Fronts in force.")
	endpoints   = describe("endpoints", "Endpoints in force, each once for every front that it serves.")
	uplink      = describe("uplink_attached", "1 if the programs are attached to the uplink, 0 if not.", "device")
	buildInfo   = describe("build_info", "Always 1; the labels tell the build.", "version", "abi", "go")
)

const (
	sweptName = "beep_sweep_removed_total"
	sweptHelp = "Flow rows that the sweep removed."
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("beep_"+name, help, labels, nil)
}
