// SPDX-License-Identifier: Apache-2.0

package main

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
	"github.com/beep-lb/beep/harness/traffic"
)

const (
	frontPort = 80
	podPort   = 8080
)

// cluster is two nodes, each with beep's two processes, a client outside, and a real control plane.
type cluster struct {
	*topo.Topology
	t       *testing.T
	control *kube.ControlPlane
	nodes   []*machine
	daemons []*process
}

func newCluster(t *testing.T) *cluster {
	t.Helper()
	require.Root(t)
	require.TCX(t)
	c := &cluster{t: t, Topology: topo.New(t, topo.TwoNodes(topo.Options{}))}
	c.control = kube.Start(t, kube.Options{})
	if err := c.control.JoinAll(t.Context(), c.Topology); err != nil {
		t.Fatal(err)
	}
	_, err := c.control.Client.CoreV1().Namespaces().Create(t.Context(),
		&corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: "beep-system"}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	for _, pod := range c.Pods {
		for _, addr := range pod.Addrs {
			if _, err := traffic.ServeHTTP(c.NS(pod.Name), pod.Name, netip.AddrPortFrom(addr, podPort)); err != nil {
				t.Fatal(err)
			}
		}
	}
	for _, name := range []string{"node-a", "node-b"} {
		node := newMachineIn(t, name, c.NS(name))
		c.nodes = append(c.nodes, node)
		c.daemons = append(c.daemons, node.datapath("--uplink-iface=eth0"))
	}
	return c
}

// start starts the controller of a node.
func (c *cluster) start(node int) *process {
	c.t.Helper()
	m := c.nodes[node]
	kubeconfig, err := c.control.Kubeconfig("beep-"+m.name, "system:masters")
	if err != nil {
		c.t.Fatal(err)
	}
	return m.start("beep-controller", "--node-name", m.name, "--kubeconfig", kubeconfig, "--ready-file", m.readyFile)
}

// ask asks a node's front, and returns which pod answered. The pod must have seen the client.
func (c *cluster) ask(at netip.Addr) (string, error) {
	ctx, cancel := context.WithTimeout(c.t.Context(), 2*time.Second)
	defer cancel()
	answer, err := traffic.Get(ctx, c.NS("client"), netip.AddrPortFrom(at, frontPort))
	if err == nil && !slices.Contains(c.Addrs("client"), answer.Client.Addr()) {
		c.t.Errorf("through %s pod %s saw %s", at, answer.Server, answer.Client)
	}
	return answer.Server, err
}

// everywhere asks every address of every node a few times, and returns the pods that answered.
func (c *cluster) everywhere() string {
	c.t.Helper()
	pods := map[string]bool{}
	for _, node := range c.nodes {
		for _, addr := range c.Addrs(node.name) {
			for range 20 {
				pod, err := c.ask(addr)
				if err != nil {
					return err.Error()
				}
				pods[pod] = true
			}
		}
	}
	var names []string
	for pod := range pods {
		names = append(names, pod)
	}
	slices.Sort(names)
	return strings.Join(names, " ")
}

// published is EXTERNAL-IP of the Service, sorted.
func (c *cluster) published() string {
	c.t.Helper()
	service, err := c.control.Client.CoreV1().Services(kube.Namespace).Get(c.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	var addrs []string
	for _, entry := range service.Status.LoadBalancer.Ingress {
		addrs = append(addrs, entry.IP)
	}
	slices.Sort(addrs)
	return strings.Join(addrs, " ")
}

func (c *cluster) eventually(what string, about *process, holds func() bool) {
	c.t.Helper()
	c.nodes[0].await(what, about.log.String, holds)
}

// TestServicesOfAnAPIServer is the way of a Service from the API server to a client outside.
func TestServicesOfAnAPIServer(t *testing.T) {
	c := newCluster(t)
	client := c.control.Client.CoreV1()
	if err := c.control.RunPods(t.Context(), &c.Plan, map[string]string{"part": "web"}); err != nil {
		t.Fatal(err)
	}
	controllers := []*process{c.start(0), c.start(1)}
	_, err := client.Services(kube.Namespace).Create(t.Context(), &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: "web"},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"part": "web"},
			IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
			Ports:          []corev1.ServicePort{{Port: frontPort, TargetPort: intstr.FromInt32(podPort)}},
		},
	}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var nodes, pods []string
	for _, node := range c.nodes {
		for _, addr := range c.Addrs(node.name) {
			nodes = append(nodes, addr.String())
		}
	}
	for _, pod := range c.Pods {
		pods = append(pods, pod.Name)
	}
	slices.Sort(nodes)
	slices.Sort(pods)
	c.eventually("EXTERNAL-IP", controllers[0], func() bool { return c.published() == strings.Join(nodes, " ") })
	c.eventually("answers of all pods", controllers[0], func() bool { return c.everywhere() == strings.Join(pods, " ") })
	for _, node := range c.nodes {
		node.await("the ready file", controllers[0].log.String, node.isReady)
	}

	// A pod leaves.
	if err := c.control.RemovePod(t.Context(), kube.Namespace, pods[0]); err != nil {
		t.Fatal(err)
	}
	c.eventually("answers of the other pods", controllers[0], func() bool { return c.everywhere() == strings.Join(pods[1:], " ") })

	// A restart within five seconds changes no status and no answer.
	before := c.version()
	controllers[0].end()
	if got := c.everywhere(); got != strings.Join(pods[1:], " ") {
		t.Errorf("without a controller: %s", got)
	}
	controllers[0] = c.start(0)
	c.nodes[0].await("the ready file", controllers[0].log.String, c.nodes[0].isReady)
	time.Sleep(5 * time.Second)
	if after := c.version(); after != before {
		t.Errorf("the Service was written: version %s, then %s", before, after)
	}

	// An API server that is away changes nothing, and what happens after it came back is seen.
	if err := c.control.APIServer.Kill9(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	if got := c.everywhere(); got != strings.Join(pods[1:], " ") {
		t.Errorf("without an API server: %s", got)
	}
	if err := c.control.APIServer.Start(); err != nil {
		t.Fatal(err)
	}
	c.eventually("the API server", controllers[0], func() bool {
		return client.Services(kube.Namespace).Delete(context.Background(), "web", metav1.DeleteOptions{}) == nil
	})
	for i, node := range c.nodes {
		node.wantFronts(controllers[i], "")
	}
	t.Logf("memory: %s", residentKiB(controllers[0].Pid()))
	for i := range c.nodes {
		controllers[i].end()
		c.daemons[i].end()
	}
}

// version is the Service's resourceVersion.
func (c *cluster) version() string {
	c.t.Helper()
	service, err := c.control.Client.CoreV1().Services(kube.Namespace).Get(c.t.Context(), "web", metav1.GetOptions{})
	if err != nil {
		c.t.Fatal(err)
	}
	return service.ResourceVersion
}

// residentKiB is the memory of a process, as the kernel counts it.
func residentKiB(pid int) string {
	text, err := os.ReadFile(filepath.Join("/proc", fmt.Sprint(pid), "status"))
	if err != nil {
		return err.Error()
	}
	var words []string
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "VmRSS:") || strings.HasPrefix(line, "Rss") {
			words = append(words, strings.Fields(line)...)
		}
	}
	return strings.Join(words, " ")
}
