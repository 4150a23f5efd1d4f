// SPDX-License-Identifier: Apache-2.0

package config

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/netip"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/beep-lb/beep/src/model"
)

// Controller holds the flags of `beep-controller`.
type Controller struct {
	PinDir string `name:"pin-dir" env:"BEEP_PIN_DIR" placeholder:"DIR" help:"Directory on bpffs that holds the maps which beep run has pinned (required)."`

	NodeName string   `name:"node-name" env:"NODE_NAME" placeholder:"NAME" help:"Name of this machine's Node (required)."`
	NodeIPs  []string `name:"node-ip" placeholder:"ADDRESS" help:"Address of this node in the underlay (repeatable, one a family); default: the InternalIPs of the Node."`
	PodCIDRs []string `name:"pod-cidr" placeholder:"PREFIX" help:"Addresses of this node's pods (repeatable, one a family); default: those of the Node."`

	Kubeconfig     string `name:"kubeconfig" env:"KUBECONFIG" placeholder:"FILE" help:"How to reach the API server, with an X.509 client certificate; default: the pod's service account."`
	SeedNamespace  string `name:"seed-namespace" placeholder:"NAMESPACE" help:"Namespace of the Secret that holds the hash seed; default: that of the pod, or of the kubeconfig's context."`
	LeaseNamespace string `name:"lease-namespace" placeholder:"NAMESPACE" help:"Namespace of the nodes' Leases and of the election; default: as of --seed-namespace."`
	Manifests      string `name:"manifests" placeholder:"DIR" help:"Read Services, EndpointSlices and Nodes from the YAML files of a directory instead of an API server."`

	LoadBalancerClass string `name:"load-balancer-class" env:"BEEP_LOAD_BALANCER_CLASS" placeholder:"CLASS" help:"Serve the Services of this loadBalancerClass; default: those without a class."`
	ReservedPorts     string `name:"reserved-ports" env:"BEEP_RESERVED_PORTS" default:"22/tcp,2379-2380/tcp,6443/tcp,10250/tcp,6081/udp" placeholder:"PORTS" help:"Ports of the nodes that no Service may take: PORT/PROTOCOL or FIRST-LAST/PROTOCOL, separated by commas."`
	NodePortRange     string `name:"node-port-range" env:"BEEP_NODE_PORT_RANGE" default:"30000-32767" placeholder:"FIRST-LAST" help:"The API server's --service-node-port-range, of which no Service may take a port; empty reserves none."`
	GenevePort        int    `name:"geneve-port" env:"BEEP_GENEVE_PORT" default:"6081" placeholder:"PORT" help:"UDP port of the tunnel between nodes, which no Service may take; the same as that of beep run."`
	IngressIPMode     string `name:"ingress-ip-mode" env:"BEEP_INGRESS_IP_MODE" default:"VIP" placeholder:"MODE" help:"How clients inside the cluster reach published addresses: VIP (kube-proxy serves them at once) or Proxy (through a node's front)."`
	MaxPublishedNodes int    `name:"max-published-nodes" env:"BEEP_MAX_PUBLISHED_NODES" default:"0" placeholder:"N" help:"Nodes that a Service lists at most, chosen by hash; 0 lists all."`
	MetricsAddr       string `name:"metrics-addr" env:"BEEP_METRICS_ADDR" default:"127.0.0.1:9963" placeholder:"ADDRESS:PORT" help:"Where metrics are served; empty disables."`
	ReadyFile         string `name:"ready-file" env:"BEEP_READY_FILE" default:"/tmp/beep-ready" placeholder:"FILE" help:"File that exists while the maps have been made as desired once."`
	ExplainSocket     string `name:"explain-socket" env:"BEEP_EXPLAIN_SOCKET" placeholder:"FILE" help:"Unix socket at which beep explain asks; default: the ready file's name and .sock."`
	LogLevel          string `name:"log-level" env:"BEEP_LOG_LEVEL" default:"info" placeholder:"LEVEL" help:"debug, info, warn or error."`
	LogFormat         string `name:"log-format" env:"BEEP_LOG_FORMAT" default:"text" placeholder:"FORMAT" help:"text or json."`
}

// Level is --log-level for log/slog.
func (c *Controller) Level() slog.Level { return levels[c.LogLevel] }

// Addresses are the --node-ip, at most one a family. They are valid if Validate found no fault.
func (c *Controller) Addresses() []netip.Addr {
	var addrs []netip.Addr
	for _, text := range c.NodeIPs {
		if addr, err := netip.ParseAddr(text); err == nil {
			addrs = append(addrs, addr.Unmap())
		}
	}
	return addrs
}

// Pods are the --pod-cidr, at most one a family. They are valid if Validate found no fault.
func (c *Controller) Pods() []netip.Prefix {
	var prefixes []netip.Prefix
	for _, text := range c.PodCIDRs {
		if prefix, err := netip.ParsePrefix(text); err == nil {
			prefixes = append(prefixes, prefix)
		}
	}
	return prefixes
}

// PortRange is the ports from First to Last, both included, of one protocol.
type PortRange struct {
	Proto       model.Proto
	First, Last uint16
}

// String prints 22/TCP or 2379-2380/TCP, which ParsePorts reads.
func (r PortRange) String() string {
	ports := strconv.Itoa(int(r.First))
	if r.Last != r.First {
		ports += "-" + strconv.Itoa(int(r.Last))
	}
	return ports + "/" + r.Proto.String()
}

// Reserved are the ports of --reserved-ports, sorted. They are complete if Validate found no fault.
func (c *Controller) Reserved() []PortRange {
	ranges, _ := ParsePorts(c.ReservedPorts)
	return ranges
}

// NodePorts are the ports of --node-port-range, of both protocols. They are complete if Validate found no fault.
func (c *Controller) NodePorts() []PortRange {
	if c.NodePortRange == "" {
		return nil
	}
	first, last, err := portSpan(c.NodePortRange)
	if err != nil {
		return nil
	}
	return []PortRange{{model.TCP, first, last}, {model.UDP, first, last}}
}

// OwnPorts are those that beep's processes listen on, as far as the flags of this one tell: the tunnel's, and those of
// the metrics, that of `beep run` by its default.
func (c *Controller) OwnPorts() []PortRange {
	ports := []PortRange{{model.UDP, uint16(c.GenevePort), uint16(c.GenevePort)}, {model.TCP, daemonMetrics, daemonMetrics}}
	if _, text, err := net.SplitHostPort(c.MetricsAddr); err == nil {
		if port, _, err := portSpan(text); err == nil && port != daemonMetrics {
			ports = append(ports, PortRange{model.TCP, port, port})
		}
	}
	return ports
}

// daemonMetrics is the port of the default of Datapath.MetricsAddr.
const daemonMetrics = 9962

// Socket is where `beep explain` asks.
func (c *Controller) Socket() string { return socketPath(c.ExplainSocket, c.ReadyFile) }

// socketPath is by the values of --explain-socket and --ready-file, which every controller of a machine has its own of.
func socketPath(explainSocket, readyFile string) string {
	return cmp.Or(explainSocket, readyFile+".sock")
}

// ParsePorts reads port ranges separated by commas, as 22/tcp,2379-2380/tcp, and sorts them by protocol and port.
// An empty text is none. The error names the first item that is none, and those that are come with it.
func ParsePorts(text string) ([]PortRange, error) {
	var ranges []PortRange
	var first error
	for item := range strings.SplitSeq(text, ",") {
		if item = strings.TrimSpace(item); item == "" {
			continue
		}
		ports, err := parsePortRange(item)
		if err != nil {
			first = cmp.Or(first, err)
			continue
		}
		ranges = append(ranges, ports)
	}
	slices.SortFunc(ranges, func(a, b PortRange) int {
		return cmp.Or(cmp.Compare(a.Proto, b.Proto), cmp.Compare(a.First, b.First), cmp.Compare(a.Last, b.Last))
	})
	return ranges, first
}

func parsePortRange(item string) (PortRange, error) {
	ports, name, _ := strings.Cut(item, "/")
	proto, err := model.ParseProto(name)
	if err != nil {
		return PortRange{}, fmt.Errorf("%q: want PORT/PROTOCOL or FIRST-LAST/PROTOCOL, as 22/tcp: %w", item, err)
	}
	first, last, err := portSpan(ports)
	if err != nil {
		return PortRange{}, fmt.Errorf("%q: %w", item, err)
	}
	return PortRange{proto, first, last}, nil
}

// portSpan reads a port, or the first and the last of several.
func portSpan(text string) (first, last uint16, err error) {
	low, high, ranged := strings.Cut(text, "-")
	if !ranged {
		high = low
	}
	from, err1 := strconv.ParseUint(low, 10, 16)
	to, err2 := strconv.ParseUint(high, 10, 16)
	if err1 != nil || err2 != nil || from == 0 || to < from {
		return 0, 0, errors.New("want ports from 1 to 65535, the lower one first")
	}
	return uint16(from), uint16(to), nil
}

// Validate reports every problem of the flags at once, in the form of Datapath.Validate.
func (c *Controller) Validate() error {
	var p Problems
	p.pinDir(c.PinDir)
	if c.NodeName == "" {
		p.add("node-name", "NODE_NAME", c.NodeName, "is required: give this machine's name in `kubectl get nodes`")
	}
	p.onePerFamily("node-ip", c.NodeIPs, func(text string) (netip.Addr, string) {
		addr, err := netip.ParseAddr(text)
		if err != nil || addr.Zone() != "" || !addr.IsGlobalUnicast() {
			return netip.Addr{}, "want a unicast address without a zone, as 192.0.2.1"
		}
		return addr.Unmap(), ""
	})
	p.onePerFamily("pod-cidr", c.PodCIDRs, func(text string) (netip.Addr, string) {
		prefix, err := netip.ParsePrefix(text)
		if err != nil || prefix != prefix.Masked() || prefix.Addr().Is4In6() {
			return netip.Addr{}, "want a prefix without host bits, as 10.42.1.0/24"
		}
		return prefix.Addr(), ""
	})
	if _, err := ParsePorts(c.ReservedPorts); err != nil {
		p.add("reserved-ports", "BEEP_RESERVED_PORTS", c.ReservedPorts, err.Error())
	}
	if _, _, err := portSpan(c.NodePortRange); c.NodePortRange != "" && err != nil {
		p.add("node-port-range", "BEEP_NODE_PORT_RANGE", c.NodePortRange, err.Error())
	}
	p.number("geneve-port", "BEEP_GENEVE_PORT", c.GenevePort, span{1, 65535})
	if c.IngressIPMode != "VIP" && c.IngressIPMode != "Proxy" {
		p.add("ingress-ip-mode", "BEEP_INGRESS_IP_MODE", c.IngressIPMode, "want VIP or Proxy")
	}
	p.number("max-published-nodes", "BEEP_MAX_PUBLISHED_NODES", c.MaxPublishedNodes, span{0, 1 << 20})
	if !filepath.IsAbs(c.ReadyFile) {
		p.add("ready-file", "BEEP_READY_FILE", c.ReadyFile, "want an absolute path")
	}
	if c.ExplainSocket != "" && !filepath.IsAbs(c.ExplainSocket) {
		p.add("explain-socket", "BEEP_EXPLAIN_SOCKET", c.ExplainSocket, "want an absolute path")
	}
	p.metricsAddr(c.MetricsAddr)
	p.logging(c.LogLevel, c.LogFormat)
	return p.orNil()
}

// onePerFamily checks every text, and that no two of them are of the same family.
func (p *Problems) onePerFamily(flag string, texts []string, parse func(string) (addr netip.Addr, fault string)) {
	first := map[bool]string{}
	for _, text := range texts {
		addr, fault := parse(text)
		if fault != "" {
			p.add(flag, "", text, fault)
			continue
		}
		family := "IPv6"
		if addr.Is4() {
			family = "IPv4"
		}
		if other, known := first[addr.Is4()]; known {
			p.add(flag, "", text, fmt.Sprintf("is %s as %s is: give one a family", family, other))
			continue
		}
		first[addr.Is4()] = text
	}
}
