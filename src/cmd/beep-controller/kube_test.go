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

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/beep"
	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/topo"
)

const frontPort = 80

// startCluster starts two nodes that run these sources, with a pod on each.
func startCluster(t *testing.T) *cluster.Cluster {
	t.Helper()
	cluster.Require(t)
	binaries, err := build()
	if err != nil {
		t.Fatal(err)
	}
	t.Setenv(beep.EnvBinary, filepath.Join(binaries, "beep"))
	c := cluster.Start(t, cluster.Options{Plan: cluster.Plan(2, topo.Options{}), Control: kube.Options{Audit: true}})
	for _, node := range c.Nodes() {
		pod := cluster.Pod("on-"+node.Name, "web", node.Name)
		if _, err := c.Control.Client.CoreV1().Pods(kube.Namespace).Create(t.Context(), pod, metav1.CreateOptions{}); err != nil {
			t.Fatal(err)
		}
	}
	return c
}

func eventually(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if err := cluster.Await(ctx, ask); err != nil {
		t.Fatalf("waited in vain for %s: %v", what, err)
	}
}

// everywhere says that all of these pods, and no others, answer by every address of every node.
func everywhere(c *cluster.Cluster, want ...string) func(context.Context) error {
	return func(ctx context.Context) error {
		var pods []string
		for _, node := range c.Nodes() {
			for _, addr := range c.Addrs(node.Name) {
				for range 20 {
					answer, err := c.Ask(ctx, "client", netip.AddrPortFrom(addr, frontPort))
					if err != nil {
						return err
					}
					pods = append(pods, answer.Server)
				}
			}
		}
		slices.Sort(pods)
		if pods = slices.Compact(pods); !slices.Equal(pods, want) {
			return fmt.Errorf("answers of %v, want those of %v", pods, want)
		}
		return nil
	}
}

// TestServicesOfAnAPIServer is the way of a Service from the API server to a client outside.
func TestServicesOfAnAPIServer(t *testing.T) {
	c := startCluster(t)
	services, ctx := c.Control.Client.CoreV1().Services(kube.Namespace), t.Context()
	if _, err := services.Create(ctx, cluster.Service("web", frontPort), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	var nodes []netip.Addr
	for _, node := range c.Nodes() {
		nodes = append(nodes, c.Addrs(node.Name)...)
	}
	eventually(t, "EXTERNAL-IP", func(ctx context.Context) error {
		got, err := c.Published(ctx, kube.Namespace, "web")
		if err == nil && !slices.Equal(got, nodes) {
			err = fmt.Errorf("published %v, want %v", got, nodes)
		}
		return err
	})
	eventually(t, "both pods", everywhere(c, "on-node-a", "on-node-b"))
	for _, node := range c.Nodes() {
		eventually(t, "the ready file", node.Controller.Ready)
	}

	// A pod leaves.
	if err := c.Control.RemovePod(ctx, kube.Namespace, "on-node-a"); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the other pod alone", everywhere(c, "on-node-b"))

	// A restart within five seconds changes no status and no answer.
	before, controller := statusWrites(t, c), c.Node("node-a").Controller
	if err := controller.Terminate(); err != nil {
		t.Fatal(err)
	}
	if err := everywhere(c, "on-node-b")(ctx); err != nil {
		t.Errorf("without a controller: %v", err)
	}
	if err := controller.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the ready file", controller.Ready)
	time.Sleep(5 * time.Second) // whoever believed that the node left would have said so
	if after := statusWrites(t, c); len(after) != len(before) {
		t.Errorf("written: %v", after[len(before):])
	}

	// An API server that is away changes nothing, and what happens after it came back is seen.
	if err := c.Control.APIServer.Kill9(); err != nil {
		t.Fatal(err)
	}
	time.Sleep(2 * time.Second)
	if err := everywhere(c, "on-node-b")(ctx); err != nil {
		t.Errorf("without an API server: %v", err)
	}
	if err := c.Control.APIServer.Start(); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the API server", func(ctx context.Context) error {
		return services.Delete(ctx, "web", metav1.DeleteOptions{})
	})
	for _, node := range c.Nodes() {
		eventually(t, "no fronts", func(context.Context) error {
			out, err := node.Datapath.Tool("fronts")
			if err == nil && strings.Count(out, "\n") > 1 {
				err = fmt.Errorf("fronts on %s:\n%s", node.Name, out)
			}
			return err
		})
	}
	t.Logf("memory: %s", residentKiB(controller.Pid()))
	for _, node := range c.Nodes() {
		if err := node.Controller.Terminate(); err != nil {
			t.Error(err)
		}
		if err := node.Controller.Wait(); err != nil {
			t.Errorf("%s ends: %v", node.Controller, err)
		}
	}
}

// statusWrites are the writes of Services' statuses so far.
func statusWrites(t *testing.T, c *cluster.Cluster) []kube.Write {
	t.Helper()
	writes, err := c.Control.Writes(cluster.UserPrefix)
	if err != nil {
		t.Fatal(err)
	}
	return slices.DeleteFunc(writes, func(w kube.Write) bool { return w.Resource != "services/status" })
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
