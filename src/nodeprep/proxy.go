// SPDX-License-Identifier: Apache-2.0

package nodeprep

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"slices"
	"strings"
	"time"
)

// The devices by which a program that serves ClusterIPs shows.
const (
	// ipvsDevice is what kube-proxy in IPVS mode binds every Service's addresses to, the published ones too.
	ipvsDevice = "kube-ipvs0"
	// ciliumDevice is there where Cilium runs, with or without kube-proxy beside it.
	ciliumDevice = "cilium_host"
)

// proxyModePage is where kube-proxy tells its mode in a word, unless its --metrics-bind-address is another.
const proxyModePage = "http://127.0.0.1:10249/proxyMode"

// proxyDeadline is for an answer from this very machine.
const proxyDeadline = 2 * time.Second

// ErrIPVS is that kube-proxy runs in a mode that takes the node's addresses, once beep publishes them, for its own.
var ErrIPVS = errors.New("kube-proxy in IPVS mode is not supported: it binds the addresses that beep publishes, which are the nodes' " +
	"own, to " + ipvsDevice + " and cuts the node off; set mode: nftables (or iptables) in kube-proxy's configuration, restart it, and " +
	"`ip link delete " + ipvsDevice + "`")

// Proxy is what a node shows of who serves its ClusterIPs.
type Proxy struct {
	// Mode is kube-proxy's own word for how it works: iptables, nftables, ipvs; empty if it does not answer.
	Mode string
	// Silence is why it does not answer; nil if it does.
	Silence error
	// IPVS and Cilium say that their devices are there.
	IPVS, Cilium bool
}

// LookAtProxy looks at the network namespace of this process. It needs no rights and changes nothing, and it does not
// fail: kube-proxy may start later than beep does.
func LookAtProxy(ctx context.Context) Proxy {
	p := Proxy{IPVS: exists(ipvsDevice), Cilium: exists(ciliumDevice)}
	p.Mode, p.Silence = askMode(ctx, proxyModePage)
	return p
}

// CheckIPVS is ErrIPVS, with how it shows, while kube-proxy works by IPVS. It is for whoever asks often: nobody is
// asked anything while the device is not there.
func CheckIPVS(ctx context.Context) error {
	if !exists(ipvsDevice) {
		return nil
	}
	_, err := LookAtProxy(ctx).Judge()
	return err
}

// Judge says what is wrong with that for beep, and what a person should know. A device of IPVS under a kube-proxy of
// another mode is a leftover; where kube-proxy does not answer, the device speaks for it.
func (p Proxy) Judge() (warnings []string, err error) {
	switch {
	case p.Mode == "ipvs":
		return nil, fmt.Errorf("%w (it says so at %s)", ErrIPVS, proxyModePage)
	case p.Silence != nil && p.IPVS:
		return nil, fmt.Errorf("%w (the device is there, and kube-proxy does not say that it is left over: %w)", ErrIPVS, p.Silence)
	case p.Silence != nil && p.Cilium:
		return []string{fmt.Sprintf("no kube-proxy answers (%v), and Cilium is there: if it replaces kube-proxy it serves the published "+
			"addresses itself, beside beep, which is not supported; see deploy/README.md, Without kube-proxy", p.Silence)}, nil
	case p.Silence != nil:
		return []string{fmt.Sprintf("no kube-proxy answers (%v): if it starts later or has another --metrics-bind-address all is well; "+
			"without any, see deploy/README.md, Without kube-proxy", p.Silence)}, nil
	case p.IPVS:
		warnings = append(warnings, fmt.Sprintf("the device %s is left from kube-proxy's IPVS mode: `ip link delete %[1]s`", ipvsDevice))
	}
	if !slices.Contains([]string{"iptables", "nftables"}, p.Mode) {
		warnings = append(warnings, fmt.Sprintf("kube-proxy works in mode %q, beside which beep was never tried", p.Mode))
	}
	return warnings, nil
}

func exists(device string) bool {
	_, err := net.InterfaceByName(device)
	return err == nil
}

// askMode reads the word. Whatever listens there instead of kube-proxy cannot make it long, or last.
func askMode(ctx context.Context, page string) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, proxyDeadline)
	defer cancel()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, page, nil)
	if err != nil {
		return "", err
	}
	// Not the default transport: it would ask the proxy of the environment.
	transport := &http.Transport{DisableKeepAlives: true}
	answer, err := transport.RoundTrip(request)
	if err != nil {
		return "", fmt.Errorf("%s: %w", page, err)
	}
	defer answer.Body.Close()
	const longest = 32
	word, err := io.ReadAll(io.LimitReader(answer.Body, longest))
	if err == nil && answer.StatusCode != http.StatusOK {
		err = errors.New(answer.Status)
	}
	if err != nil {
		return "", fmt.Errorf("%s: %w", page, err)
	}
	return strings.TrimSpace(string(word)), nil
}
