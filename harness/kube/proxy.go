// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	dto "github.com/prometheus/client_model/go"
	"github.com/prometheus/common/expfmt"
	"github.com/prometheus/common/model"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/topo"
)

// ProxyMode is how kube-proxy programs the kernel.
type ProxyMode string

// The modes of kube-proxy that a Linux kernel without IPVS has.
const (
	IPTables ProxyMode = "iptables"
	NFTables ProxyMode = "nftables"
)

// ProxyModes are both.
var ProxyModes = []ProxyMode{IPTables, NFTables}

// ProxyOptions say how kube-proxy starts.
type ProxyOptions struct {
	Mode     ProxyMode
	Evidence *artifacts.Collector // gets its log; nil for none
	Args     []string             // further flags
}

// Proxy is kube-proxy on one node, which must have joined.
type Proxy struct {
	*Program
	client *http.Client
}

// The pages of kube-proxy, on the loopback of the node's own namespace.
const (
	proxyHealth  = "127.0.0.1:10256"
	proxyMetrics = "127.0.0.1:10249"
	syncDeadline = 30 * time.Second
)

// StartProxy starts kube-proxy in a node's namespace, under its usual identity, and returns when its rules of both
// families are in the kernel.
func (c *ControlPlane) StartProxy(topology *topo.Topology, node string, o ProxyOptions) (*Proxy, error) {
	kubeconfig, err := c.Kubeconfig("system:kube-proxy")
	if err != nil {
		return nil, err
	}
	args := []string{
		"--kubeconfig=" + kubeconfig, "--hostname-override=" + node, "--proxy-mode=" + string(o.Mode),
		"--detect-local-mode=ClusterCIDR", "--cluster-cidr=" + joined(PodCIDRs),
		"--healthz-bind-address=" + proxyHealth, "--metrics-bind-address=" + proxyMetrics,
		// The size of the connection table belongs to the machine, and cannot be written from a namespace.
		"--conntrack-max-per-core=0", "--conntrack-min=0",
	}
	ns := topology.NS(node)
	p := &Proxy{
		Program: NewProgram(ns, node, c.programs.path("kube-proxy"), append(args, o.Args...)...),
		client:  &http.Client{Transport: &http.Transport{DialContext: ns.DialContext, DisableKeepAlives: true}},
	}
	if o.Evidence != nil {
		p.Show(o.Evidence, node+"-kube-proxy")
	}
	return p, p.Restart()
}

// Restart starts the process, which must not run, on the rules that are there, and returns when it has synced them.
func (p *Proxy) Restart() error {
	if err := p.Start(); err != nil {
		return err
	}
	return p.Synced(context.Background())
}

// Synced waits until kube-proxy has written all that it knew of at some moment of the call, in both families.
func (p *Proxy) Synced(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, syncDeadline)
	defer cancel()
	return p.Await(ctx, p.askSynced)
}

// askSynced compares when each family's rules were last written with when a change was last queued for them.
func (p *Proxy) askSynced(ctx context.Context) error {
	text, err := fetch(ctx, p.client, "http://"+proxyMetrics+"/metrics")
	if err != nil {
		return err
	}
	parser := expfmt.NewTextParser(model.LegacyValidation)
	families, err := parser.TextToMetricFamilies(strings.NewReader(text))
	if err != nil {
		return err
	}
	written := gauges(families["kubeproxy_sync_proxy_rules_last_timestamp_seconds"])
	queued := gauges(families["kubeproxy_sync_proxy_rules_last_queued_timestamp_seconds"])
	for _, family := range []string{"IPv4", "IPv6"} {
		if written[family] == 0 || written[family] < queued[family] {
			return fmt.Errorf("%s: written at %f, queued at %f", family, written[family], queued[family])
		}
	}
	return nil
}

// gauges are the values of a metric by IP family.
func gauges(metric *dto.MetricFamily) map[string]float64 {
	values := map[string]float64{}
	for _, row := range metric.GetMetric() {
		for _, label := range row.GetLabel() {
			if label.GetName() == "ip_family" {
				values[label.GetValue()] = row.GetGauge().GetValue()
			}
		}
	}
	return values
}
