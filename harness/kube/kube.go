// SPDX-License-Identifier: Apache-2.0

// Package kube runs a real Kubernetes control plane (etcd, kube-apiserver, kube-controller-manager) in a network
// namespace of its own, joins the nodes of a topology to it, and does there what a kubelet would: it posts Nodes and
// Pods. Invariant: every program is upstream's, every object passes upstream's admission, and all of it ends with the
// test that started it.
//
// A cluster is put together like this (tb is *testing.T or GinkgoT()):
//
//	topology := topo.New(tb, topo.TwoNodes(topo.Options{}))
//	evidence := artifacts.New(tb, topology)
//	cluster := kube.Start(tb, kube.Options{Evidence: evidence})
//	err := cluster.JoinAll(ctx, topology)             // Nodes, and their way to the API server
//	err = cluster.RunPods(ctx, &topology.Plan, nil)   // Pods that are ready, labelled app=NAME
//	_, err = cluster.Client.CoreV1().Services("default").Create(ctx, service, metav1.CreateOptions{})
//	proxy, err := cluster.StartProxy(topology, "node-a", kube.ProxyOptions{Mode: kube.NFTables})
package kube

import (
	"context"
	"errors"
	"fmt"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/kubernetes"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
)

// The networks of every cluster. Pods and nodes have theirs from their topology.
var (
	// Management is the network by which nodes reach the API server; beep has no business on it.
	Management = netip.MustParsePrefix("203.0.113.0/24")
	// Server is where the API server listens.
	Server = netip.MustParseAddrPort("203.0.113.1:6443")
	// ServiceCIDRs hold the ClusterIPs, IPv4 first.
	ServiceCIDRs = []netip.Prefix{netip.MustParsePrefix("10.43.0.0/16"), netip.MustParsePrefix("2001:db8:5::/112")}
	// PodCIDRs hold the pods of all nodes, IPv4 first.
	PodCIDRs = []netip.Prefix{netip.MustParsePrefix("10.42.0.0/16"), netip.MustParsePrefix("2001:db8:a::/64")}
)

// readyDeadline bounds the start of the whole control plane, which takes seconds on an idle machine.
const readyDeadline = 90 * time.Second

// Options say how a control plane starts. The zero value is one with upstream's defaults.
type Options struct {
	Evidence              *artifacts.Collector // gets the programs' logs and the cluster's objects; nil for none
	APIServerArgs         []string             // further flags of kube-apiserver
	ControllerManagerArgs []string             // further flags of kube-controller-manager
	Audit                 bool                 // have the API server write down every write, for Writes
	// Machines says that the nodes are machines with kubelets, and run what is scheduled to them: there is a scheduler, pods
	// get accounts, the API server may ask kubelets, and certificate requests are signed.
	Machines bool
}

// ControlPlane is a running control plane. Its methods may be called from any goroutine.
type ControlPlane struct {
	Client            kubernetes.Interface // as cluster administrator, from the test's own process
	Etcd              *Program
	APIServer         *Program
	ControllerManager *Program
	Scheduler         *Program // nil without Options.Machines

	ns       *netns.NS
	dir      string // certificates, kubeconfigs, etcd's data
	programs Binaries
	ca       *authority
	evidence *artifacts.Collector

	mu       sync.Mutex
	closed   bool
	plugged  int // nodes on the management network so far
	restored int // Services so far, see Restore
	stop     context.CancelFunc
	beats    sync.WaitGroup
	life     context.Context               // ends with Close
	cards    map[string]string             // the ports of the management network, by node
	kubelets map[string]context.CancelFunc // ends the beats of a node
	lastSeen string                        // the objects, as they were when a failed test ended
}

// Start starts a control plane for one test and returns when it serves. It needs root and the Kubernetes programs
// (`make kube-binaries`), and ends at the test's cleanup. Call it after artifacts.New.
func Start(tb require.TB, o Options) *ControlPlane {
	tb.Helper()
	require.Root(tb)
	_, err := FindBinaries()
	require.That(tb, "Kubernetes programs", err)
	c, err := Launch(o)
	if err != nil {
		tb.Fatalf("%v", err)
	}
	tb.Cleanup(func() {
		if tb.Failed() {
			c.remember()
		}
		if err := c.Close(); err != nil {
			tb.Errorf("%v", err)
		}
	})
	return c
}

// Launch is Start for a program that has no test around it; the caller calls Close. After an error nothing is left
// behind.
func Launch(o Options) (*ControlPlane, error) {
	programs, err := FindBinaries()
	if err != nil {
		return nil, err
	}
	c := &ControlPlane{
		programs: programs, evidence: o.Evidence, cards: map[string]string{}, kubelets: map[string]context.CancelFunc{},
	}
	c.life, c.stop = context.WithCancel(context.Background())
	if err := c.launch(o); err != nil {
		err = fmt.Errorf("start the control plane: %w", err)
		if c.APIServer != nil {
			err = fmt.Errorf("%w\nkube-apiserver's log ends:\n%s", err, tail(c.APIServer.Log(), 4<<10))
		}
		return nil, errors.Join(err, c.Close())
	}
	return c, nil
}

func (c *ControlPlane) launch(o Options) error {
	var err error
	if c.dir, err = os.MkdirTemp("", "beep-kube-"); err != nil {
		return err
	}
	if c.ns, err = netns.Create("control-plane"); err != nil {
		return err
	}
	if err := c.addSegment(); err != nil {
		return fmt.Errorf("management network: %w", err)
	}
	if c.ca, err = newAuthority(); err != nil {
		return err
	}
	config, err := c.Config("kubernetes-admin", "system:masters")
	if err != nil {
		return err
	}
	if c.Client, err = kubernetes.NewForConfig(config); err != nil {
		return err
	}
	if o.Evidence != nil {
		c.register(o.Evidence)
	}
	ctx, cancel := context.WithTimeout(c.life, readyDeadline)
	defer cancel()
	if err := c.startServer(ctx, o); err != nil {
		return err
	}
	if err := c.startControllers(ctx, o); err != nil || !o.Machines {
		return err
	}
	return c.startScheduler(ctx)
}

// startServer starts etcd and the API server and waits until the latter is ready.
func (c *ControlPlane) startServer(ctx context.Context, o Options) error {
	var err error
	c.Etcd, err = c.start("etcd", "--data-dir", filepath.Join(c.dir, "etcd"), "--unsafe-no-fsync", "--log-level", "warn",
		"--listen-client-urls", store, "--advertise-client-urls", store, "--listen-peer-urls", "http://127.0.0.1:2380")
	if err != nil {
		return err
	}
	pair, err := c.ca.serverPair(c.dir, Server.Addr(), netip.MustParseAddr("127.0.0.1"), ServiceCIDRs[0].Addr().Next())
	if err != nil {
		return err
	}
	account, err := c.ca.accountKey(c.dir)
	if err != nil {
		return err
	}
	flags := []string{
		"--etcd-servers=" + store,
		"--bind-address=0.0.0.0", fmt.Sprintf("--secure-port=%d", Server.Port()), "--advertise-address=" + Server.Addr().String(),
		"--tls-cert-file=" + pair.cert, "--tls-private-key-file=" + pair.key, "--client-ca-file=" + c.caFile(),
		"--service-account-key-file=" + account, "--service-account-signing-key-file=" + account,
		"--service-account-issuer=https://kubernetes.default.svc",
		"--service-cluster-ip-range=" + joined(ServiceCIDRs),
		"--authorization-mode=Node,RBAC",
		"--profiling=false",
	}
	if o.Machines {
		kubelets, err := c.kubeletFlags()
		if err != nil {
			return err
		}
		flags = append(flags, kubelets...)
	} else {
		// Pods need no token, since nothing runs in them that would talk to the API server.
		flags = append(flags, "--disable-admission-plugins=ServiceAccount")
	}
	if o.Audit {
		audit, err := c.auditFlags()
		if err != nil {
			return err
		}
		flags = append(flags, audit...)
	}
	if c.APIServer, err = c.start("kube-apiserver", append(flags, o.APIServerArgs...)...); err != nil {
		return err
	}
	return c.APIServer.Await(ctx, func(ctx context.Context) error {
		return c.Client.Discovery().RESTClient().Get().AbsPath("/readyz").Do(ctx).Error()
	})
}

// startControllers starts the controller manager and waits until its controllers run.
func (c *ControlPlane) startControllers(ctx context.Context, o Options) error {
	// An administrator: upstream's manager has its rights by an account for each controller, and takes seconds to make them.
	kubeconfig, err := c.Kubeconfig("system:kube-controller-manager", "system:masters")
	if err != nil {
		return err
	}
	const port = 10257
	flags := []string{
		"--kubeconfig=" + kubeconfig, "--leader-elect=false",
		// By default 20 requests a second: 50 Services of a pod that changes would take ten seconds.
		"--kube-api-qps=1000", "--kube-api-burst=1000",
		"--bind-address=127.0.0.1", fmt.Sprintf("--secure-port=%d", port), "--cert-dir=" + c.dir,
		"--service-account-private-key-file=" + filepath.Join(c.dir, accountFile), "--root-ca-file=" + c.caFile(),
		"--profiling=false",
	}
	if o.Machines {
		signing, err := c.ca.signingFlags(c.dir)
		if err != nil {
			return err
		}
		flags = append(flags, signing...)
	}
	c.ControllerManager, err = c.start("kube-controller-manager", append(flags, o.ControllerManagerArgs...)...)
	if err != nil {
		return err
	}
	return c.ControllerManager.Await(ctx, func(ctx context.Context) error {
		return c.healthy(ctx, fmt.Sprintf("https://127.0.0.1:%d/healthz", port))
	})
}

// start starts a program of the control plane.
func (c *ControlPlane) start(name string, args ...string) (*Program, error) {
	p := NewProgram(c.ns, "the control plane", c.programs.path(name), args...)
	if c.evidence != nil {
		p.Show(c.evidence, name)
	}
	return p, p.Start()
}

// Config is a client's configuration for the test's own process, with a certificate of the user and groups.
func (c *ControlPlane) Config(user string, groups ...string) (*rest.Config, error) {
	pair, err := c.ca.client(user, groups)
	if err != nil {
		return nil, err
	}
	return &rest.Config{
		Host:            "https://" + Server.String(),
		TLSClientConfig: rest.TLSClientConfig{CAData: c.ca.pem, CertData: pair.cert, KeyData: pair.key},
		ContentConfig: rest.ContentConfig{
			ContentType: runtime.ContentTypeProtobuf, AcceptContentTypes: runtime.ContentTypeProtobuf + ",application/json",
		},
		Dial: func(ctx context.Context, network, address string) (net.Conn, error) {
			return c.ns.DialContext(ctx, network, address)
		},
		QPS: -1, // no limit of the client's own: specs post as fast as the server takes it
	}, nil
}

// Kubeconfig writes a kubeconfig for programs in the nodes' namespaces and in the control plane's, with a certificate
// of the user and groups, and returns its path. It lives as long as the control plane.
func (c *ControlPlane) Kubeconfig(user string, groups ...string) (string, error) {
	return c.KubeconfigAt(Server, user, groups...)
}

// KubeconfigAt is Kubeconfig for programs that look for the API server elsewhere: at something that stands between.
func (c *ControlPlane) KubeconfigAt(server netip.AddrPort, user string, groups ...string) (string, error) {
	pair, err := c.ca.client(user, groups)
	if err != nil {
		return "", err
	}
	const name = "beep"
	config := clientcmdapi.NewConfig()
	config.Clusters[name] = &clientcmdapi.Cluster{Server: "https://" + server.String(), CertificateAuthorityData: c.ca.pem}
	config.AuthInfos[name] = &clientcmdapi.AuthInfo{ClientCertificateData: pair.cert, ClientKeyData: pair.key}
	config.Contexts[name] = &clientcmdapi.Context{Cluster: name, AuthInfo: name}
	config.CurrentContext = name
	// A file a call: programs of one user may start at once.
	file, err := os.CreateTemp(c.dir, strings.NewReplacer(":", "-", "/", "-").Replace(user)+"-*.kubeconfig")
	if err == nil {
		err = errors.Join(file.Close(), clientcmd.WriteToFile(*config, file.Name()))
	}
	if err != nil {
		return "", fmt.Errorf("kubeconfig of %s: %w", user, err)
	}
	return file.Name(), nil
}

// NodeKubeconfig is Kubeconfig for a node's own identity, as its kubelet has it.
func (c *ControlPlane) NodeKubeconfig(node string) (string, error) {
	return c.Kubeconfig("system:node:"+node, "system:nodes")
}

// NS is the control plane's namespace, which has Server's address on the management network: what is to stand between
// the API server and its clients listens there.
func (c *ControlPlane) NS() *netns.NS { return c.ns }

// Show has a collector show the programs' logs and the cluster's objects. Options.Evidence does so from the start;
// this is for a control plane that several specs share, each with its own collector.
func (c *ControlPlane) Show(evidence *artifacts.Collector) {
	c.register(evidence)
	for name, p := range map[string]*Program{
		"etcd": c.Etcd, "kube-apiserver": c.APIServer, "kube-controller-manager": c.ControllerManager, "kube-scheduler": c.Scheduler,
	} {
		if p != nil {
			p.Show(evidence, name)
		}
	}
}

// Close ends the control plane and removes what it wrote. It may be called twice.
func (c *ControlPlane) Close() error {
	c.mu.Lock()
	if c.closed {
		c.mu.Unlock()
		return nil
	}
	c.closed = true
	c.mu.Unlock()
	c.stop()
	c.beats.Wait()
	var errs []error
	if c.ns != nil {
		errs = append(errs, c.ns.Close())
	}
	if c.dir != "" {
		errs = append(errs, os.RemoveAll(c.dir))
	}
	return errors.Join(errs...)
}

func joined(prefixes []netip.Prefix) string {
	var texts []string
	for _, prefix := range prefixes {
		texts = append(texts, prefix.String())
	}
	return strings.Join(texts, ",")
}
