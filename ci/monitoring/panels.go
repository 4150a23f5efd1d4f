// SPDX-License-Identifier: Apache-2.0

package main

// on selects the instances that the reader chose.
const on = `{instance=~"$instance"}`

// rows are the dashboard, from the cluster down to one process.
var rows = []row{
	{title: "Cluster",
		figures: []panel{
			{title: "Nodes attached", about: "Nodes whose programs are on all of their uplinks.", unit: "short", queries: []query{
				{`count(min by (instance) (beep_uplink_attached) == 1)`, ""}}},
			{title: "Nodes published", about: "Live nodes, as the publisher sees them.", unit: "short", queries: []query{
				{`max(beep_controller_published_nodes{state="live"})`, ""}}},
			{title: "Publishers", about: "Controllers that write Services' statuses: one.", unit: "short", queries: []query{
				{`sum(beep_controller_leading)`, ""}}},
			{title: "Services", unit: "short", queries: []query{{`max(beep_controller_objects{kind="Service"})`, ""}}},
			{title: "Established flows", about: "Each once on every node that it touches.", unit: "short", queries: []query{
				{`sum(beep_flows{state="established"})`, ""}}},
			{title: "Left out", about: "Services and ports that are not served, by the controller that counts most.", unit: "short", queries: []query{
				{`max(sum by (instance) (beep_controller_left_out{reason=~"MapFull|PortConflict|PortReserved|NoAddressFamily|SCTPUnsupported|ForeignStatus"})) or vector(0)`, ""}}},
		},
		graphs: []panel{
			{title: "From clients, by node dialled", unit: "pps", stacked: true, queries: []query{
				{`sum by (instance) (rate(beep_traffic_packets_total{from="client", instance=~"$instance"}[$__rate_interval]))`, "{{instance}}"}}},
			{title: "New flows, by node dialled", unit: "ops", stacked: true, queries: []query{
				{`sum by (instance) (rate(beep_flows_new_total{via="client", instance=~"$instance"}[$__rate_interval]))`, "{{instance}}"}}},
		}},
	{title: "Traffic of nodes",
		graphs: []panel{
			{title: "Packets, by way", unit: "pps", queries: []query{
				{`sum by (from, to) (rate(beep_traffic_packets_total` + on + `[$__rate_interval]))`, "{{from}} > {{to}}"}}},
			{title: "Bytes, by way", unit: "Bps", queries: []query{
				{`sum by (from, to) (rate(beep_traffic_bytes_total` + on + `[$__rate_interval]))`, "{{from}} > {{to}}"}}},
			{title: "Drops, by reason", about: "beep drops says what each means.", unit: "pps", stacked: true, queries: []query{
				{`sum by (reason) (rate(beep_drops_packets_total` + on + `[$__rate_interval])) > 0`, "{{reason}}"}}},
			{title: "Drops, by node", unit: "pps", stacked: true, queries: []query{
				{`sum by (instance) (rate(beep_drops_packets_total` + on + `[$__rate_interval]))`, "{{instance}}"}}},
		}},
	{title: "Flows and maps",
		graphs: []panel{
			{title: "Flows, by state", unit: "short", stacked: true, queries: []query{
				{`sum by (state) (beep_flows` + on + `)`, "{{state}}"}}},
			{title: "Flows that were swept, and ports remapped", unit: "ops", queries: []query{
				{`sum by (kind) (rate(beep_sweep_removed_total` + on + `[$__rate_interval]))`, "swept: {{kind}}"},
				{`sum by (kind) (rate(beep_controller_sweep_removed_total` + on + `[$__rate_interval]))`, "endpoint gone: {{kind}}"},
				{`sum(rate(beep_flows_remapped_total` + on + `[$__rate_interval]))`, "remapped"}}},
			{title: "How full the maps are", about: "The fullest of all nodes. What does not fit into FRONT_ maps is refused; flow tables push out the idlest row.",
				unit: "percentunit", max: 1, queries: []query{
					{`max by (map) (beep_map_entries{map!~"BUDGET|CONFIG|DROPS|TRAFFIC", instance=~"$instance"} / beep_map_max_entries)`, "{{map}}"}}},
			{title: "Fronts and endpoints", unit: "short", queries: []query{
				{`max(beep_fronts` + on + `)`, "fronts"}, {`max(beep_endpoints` + on + `)`, "endpoints, once for each front"}}},
		}},
	{title: "Controllers",
		graphs: []panel{
			{title: "Time of a reconcile", about: "From a change being taken up to the maps being as desired.", unit: "s", queries: []query{
				{`histogram_quantile(0.5, sum by (le) (rate(beep_controller_reconcile_seconds_bucket` + on + `[$__rate_interval])))`, "half"},
				{`histogram_quantile(0.99, sum by (le) (rate(beep_controller_reconcile_seconds_bucket` + on + `[$__rate_interval])))`, "99 of 100"}}},
			{title: "Reconciles and changes", unit: "ops", queries: []query{
				{`sum(rate(beep_controller_reconcile_seconds_count` + on + `[$__rate_interval]))`, "reconciles"},
				{`sum(rate(beep_controller_reconcile_failures_total` + on + `[$__rate_interval]))`, "failures"},
				{`sum by (object, action) (rate(beep_controller_steps_total` + on + `[$__rate_interval]))`, "{{object}} {{action}}"}}},
			{title: "Publication", about: "Writes of Services' statuses, by their result.", unit: "ops", queries: []query{
				{`sum by (result) (rate(beep_controller_status_writes_total` + on + `[$__rate_interval]))`, "{{result}}"}}},
			{title: "Age of the Leases", about: "Above 40 s a node is taken for lost.", unit: "s", queries: []query{
				{`max by (instance) (beep_controller_lease_age_seconds` + on + `)`, "{{instance}}"}}},
			{title: "Nodes, as the publisher sees them", unit: "short", queries: []query{
				{`max by (state) (beep_controller_published_nodes)`, "{{state}}"},
				{`max(beep_controller_detached_nodes)`, "detached"}}},
			{title: "Not served, by reason", unit: "short", queries: []query{
				{`max by (reason) (beep_controller_left_out` + on + `)`, "{{reason}}"}}},
		}},
	{title: "Processes",
		graphs: []panel{
			{title: "Resident memory", unit: "bytes", queries: []query{
				{`process_resident_memory_bytes` + on + ` and on (instance, job) (beep_build_info or beep_controller_build_info)`, "{{job}} {{instance}}"}}},
			{title: "CPU", unit: "percentunit", queries: []query{
				{`rate(process_cpu_seconds_total` + on + `[$__rate_interval]) and on (instance, job) (beep_build_info or beep_controller_build_info)`, "{{job}} {{instance}}"}}},
			{title: "Memory of the maps", unit: "bytes", stacked: true, queries: []query{
				{`max by (map) (beep_map_memory_bytes` + on + `)`, "{{map}}"}}},
			{title: "Versions", unit: "short", queries: []query{
				{`count by (version) (beep_build_info)`, "beep run {{version}}"},
				{`count by (version) (beep_controller_build_info)`, "beep-controller {{version}}"}}},
		}},
}
