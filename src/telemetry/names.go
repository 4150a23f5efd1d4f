// SPDX-License-Identifier: Apache-2.0

package telemetry

import "github.com/prometheus/client_golang/prometheus"

// What beep measures; dashboards and alerts know these names, so they are changed like an interface. Counters of
// drops live in the kernel and survive a restart of the daemon.
var (
	dropPackets = describe("drops_packets_total", "Packets dropped.", "reason", "direction")
	dropBytes   = describe("drops_bytes_total", "Bytes of the packets dropped, link layer included.", "reason", "direction")
	packets     = describe("traffic_packets_total",
		"Packets forwarded, each segment of a large one; copies beside what they stand for. Only with --count-packets.", "from", "to")
	bytes = describe("traffic_bytes_total",
		"Bytes of the packets forwarded as they left the programs, link layer included. Only with --count-packets.", "from", "to")
	newFlows = describe("flows_new_total",
		"Flows that began: of clients that dialled this node, and through a tunnel to an endpoint here.", "via")
	remapped = describe("flows_remapped_total",
		"Flows whose endpoint here sees another source port than the client's, which another flow has.")
	flows      = describe("flows", "Flows with a row on this node.", "state", "table")
	mapEntries = describe("map_entries", "Rows in use.", "map")
	mapMax     = describe("map_max_entries", "Rows that fit.", "map")
	mapBytes   = describe("map_memory_bytes", "Memory of the map, as the kernel counts it.", "map")
	fronts     = describe("fronts", "Fronts in force.")
	endpoints  = describe("endpoints", "Endpoints in force, each once for every front that it serves.")
	uplink     = describe("uplink_attached", "1 if the programs are attached to the uplink, 0 if not.", "device")
	buildInfo  = describe("build_info", "Always 1; the labels tell the build.", "version", "abi", "go")
)

const (
	sweptName = "beep_sweep_removed_total"
	sweptHelp = "Flow rows that the sweep removed."
)

func describe(name, help string, labels ...string) *prometheus.Desc {
	return prometheus.NewDesc("beep_"+name, help, labels, nil)
}

// What the controller measures.
const (
	reconcileName       = "beep_controller_reconcile_seconds"
	reconcileHelp       = "Time from a change being taken up to the maps being as desired."
	reconcileFailedName = "beep_controller_reconcile_failures_total"
	reconcileFailedHelp = "Runs after which the maps were not as desired; each is tried again."
	stepsName           = "beep_controller_steps_total"
	stepsHelp           = "Changes of the maps."
	departedName        = "beep_controller_sweep_removed_total"
	departedHelp        = "Flow and affinity rows that went because their endpoint did."
	leftOutName         = "beep_controller_left_out"
	leftOutHelp         = "Things that are not served, by the reason."
	objectsName         = "beep_controller_objects"
	objectsHelp         = "Objects known of the API server or of the manifests."
	detachedName        = "beep_controller_detached_nodes"
	detachedHelp        = "Nodes where beep is not known to be attached: their endpoints are used last."
	statusWritesName    = "beep_controller_status_writes_total"
	statusWritesHelp    = "Writes of a Service's status, by their result."
	leadingName         = "beep_controller_leading"
	leadingHelp         = "1 if this node publishes the Services' addresses, 0 if another one does."
	publishedName       = "beep_controller_published_nodes"
	publishedHelp       = "Nodes that may be published, as the publisher sees them: live ones, and of these lost ones that are held."
	leaseAgeName        = "beep_controller_lease_age_seconds"
	leaseAgeHelp        = "Time since this node's Lease was renewed, or since the start if it was not."
	controllerReadyName = "beep_controller_ready"
	controllerReadyHelp = "1 if the maps have been made as desired once, 0 if not."
	controllerInfoName  = "beep_controller_build_info"
	controllerInfoHelp  = "Always 1; the labels tell the build."
)
