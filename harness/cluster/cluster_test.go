// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/cluster"
	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
	"github.com/beep-lb/beep/harness/topo"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

const (
	limit = 90 * time.Second
	port  = 80
)

func await(t *testing.T, what string, ask func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	if err := cluster.Await(ctx, ask); err != nil {
		t.Fatalf("%s: %v", what, err)
	}
}

// TestCluster is the life of a Deployment and of a node in one cluster.
func TestCluster(t *testing.T) {
	c := cluster.Start(t, cluster.Options{
		Plan: cluster.Plan(2, topo.Options{}), Proxy: kube.NFTables,
		Control: kube.Options{Audit: true, ControllerManagerArgs: []string{"--node-monitor-grace-period=15s", "--node-monitor-period=1s"}},
	})
	ctx := t.Context()
	deployments := c.Control.Client.AppsV1().Deployments(kube.Namespace)
	if _, err := deployments.Create(ctx, cluster.Deployment("web", 2), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}
	if _, err := c.Control.Client.CoreV1().Services(kube.Namespace).Create(ctx, cluster.Service("web", port), metav1.CreateOptions{}); err != nil {
		t.Fatal(err)
	}

	published := func(want ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			got, err := c.Published(ctx, kube.Namespace, "web")
			var all []netip.Addr
			for _, node := range want {
				all = append(all, c.Addrs(node)...)
			}
			slices.SortFunc(got, netip.Addr.Compare)
			slices.SortFunc(all, netip.Addr.Compare)
			if err == nil && !slices.Equal(got, all) {
				err = fmt.Errorf("published %v, want %v", got, all)
			}
			return err
		}
	}
	answers := func(nodes ...string) func(context.Context) error {
		return func(ctx context.Context) error {
			for _, node := range nodes {
				for _, addr := range c.Addrs(node) {
					if _, err := c.Ask(ctx, "client", netip.AddrPortFrom(addr, port)); err != nil {
						return err
					}
				}
			}
			return nil
		}
	}
	rolledOut := func(ctx context.Context) error {
		d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err == nil && !complete(d) {
			err = fmt.Errorf("deployment: %+v", d.Status)
		}
		return err
	}
	await(t, "roll-out", rolledOut)
	await(t, "status", published("node-a", "node-b"))
	await(t, "answers", answers("node-a", "node-b"))

	t.Run("pods of a Deployment are spread over the nodes", func(t *testing.T) {
		pods, err := c.Control.Client.CoreV1().Pods(kube.Namespace).List(ctx, metav1.ListOptions{})
		if err != nil || len(pods.Items) != 2 || pods.Items[0].Spec.NodeName == pods.Items[1].Spec.NodeName {
			t.Errorf("%v %+v", err, pods.Items)
		}
	})
	t.Run("a rolling update replaces them, and their namespaces go", func(t *testing.T) {
		before := c.Members()
		d, err := deployments.Get(ctx, "web", metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		d.Spec.Template.Annotations = map[string]string{"generation": "2"}
		if _, err := deployments.Update(ctx, d, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		await(t, "roll-out", rolledOut)
		await(t, "the old namespaces' end", func(context.Context) error {
			after := c.Members()
			if len(after) != len(before) || after[len(after)-1].NS == before[len(before)-1].NS {
				return fmt.Errorf("%v, before %v", after, before)
			}
			return nil
		})
		await(t, "answers", answers("node-a", "node-b"))
	})
	t.Run("a node that is off leaves, and one that is on comes back", func(t *testing.T) {
		if err := c.Node("node-b").PowerOff(); err != nil {
			t.Fatal(err)
		}
		await(t, "status", published("node-a"))
		if err := c.Node("node-b").PowerOn(ctx); err != nil {
			t.Fatal(err)
		}
		await(t, "status", published("node-a", "node-b"))
		await(t, "answers", answers("node-a", "node-b"))
	})
	t.Run("the controllers write nothing but what they may", func(t *testing.T) {
		writes, err := c.Control.Writes(cluster.UserPrefix)
		if err != nil || len(writes) == 0 {
			t.Fatal(err, writes)
		}
		for _, write := range writes {
			if write.Code == 403 {
				t.Errorf("refused: %s", write)
			}
		}
	})
}

// complete says that all replicas are of the last generation, and no others are left.
func complete(d *appsv1.Deployment) bool {
	s, want := d.Status, *d.Spec.Replicas
	return s.ObservedGeneration >= d.Generation && s.UpdatedReplicas == want && s.Replicas == want && s.AvailableReplicas == want
}
