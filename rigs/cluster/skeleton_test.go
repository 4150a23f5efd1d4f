// SPDX-License-Identifier: Apache-2.0

package cluster_test

import (
	"context"
	"fmt"
	"net/netip"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/e2e-framework/klient"
	"sigs.k8s.io/e2e-framework/klient/k8s"
	"sigs.k8s.io/e2e-framework/klient/wait"
	"sigs.k8s.io/e2e-framework/klient/wait/conditions"
	"sigs.k8s.io/e2e-framework/pkg/env"
	"sigs.k8s.io/e2e-framework/pkg/envconf"
	"sigs.k8s.io/e2e-framework/pkg/features"

	"github.com/beep-lb/beep/harness/artifacts"
	"github.com/beep-lb/beep/harness/cluster"
)

// TestSkeleton is here to be copied by whoever knows sigs.k8s.io/e2e-framework better than ginkgo: environments, features
// and klient as they document them, on the cluster that this package's TestMain has started. A package of its own wants
// a TestMain like ours, or cluster.Start in the test if it has only one.
//
//	go test ./rigs/cluster -run TestSkeleton -v
func TestSkeleton(t *testing.T) {
	// Without root, TCX or the Kubernetes programs this skips with the reason, and fails where CI=true.
	cluster.Require(t)

	// If the test or a feature of it fails, the dump is on disk and its path in the log: objects, maps, logs, the state of
	// every namespace. It looks at the end of the test, so nothing may be torn down before that.
	evidence := artifacts.New(t, shared.Topology)
	shared.Show(evidence)

	// The framework takes the cluster as it takes any: by a client. The API server is in a namespace of its own, and the
	// client's configuration knows the way; a kubeconfig of this process would not.
	admin, err := shared.Control.Config("kubernetes-admin", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	client, err := klient.New(admin)
	if err != nil {
		t.Fatal(err)
	}
	environment := env.NewWithConfig(envconf.New().WithClient(client).WithNamespace("skeleton"))

	// What every feature of the environment needs is made here, once for each.
	environment.BeforeEachFeature(func(ctx context.Context, config *envconf.Config, _ *testing.T, _ features.Feature) (context.Context, error) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: config.Namespace()}}
		return ctx, config.Client().Resources().Create(ctx, namespace)
	})
	environment.AfterEachFeature(func(ctx context.Context, config *envconf.Config, _ *testing.T, _ features.Feature) (context.Context, error) {
		namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: config.Namespace()}}
		return ctx, config.Client().Resources().Delete(ctx, namespace)
	})

	// No other spec's Service has this port.
	const port = 9999
	environment.Test(t, features.New("a Deployment behind a LoadBalancer").
		WithLabel("rig", "cluster").
		Setup(func(ctx context.Context, t *testing.T, config *envconf.Config) context.Context {
			// cluster.Deployment, Service and Pod are objects that this cluster's kubelets serve; take any others, as long as
			// their containers say on which ports they listen.
			deployment, service := cluster.Deployment(app, 2), cluster.Service(app, port)
			deployment.Namespace, service.Namespace = config.Namespace(), config.Namespace()
			for _, object := range []k8s.Object{deployment, service} {
				if err := config.Client().Resources().Create(ctx, object); err != nil {
					t.Fatal(err)
				}
			}
			available := conditions.New(config.Client().Resources()).DeploymentAvailable(app, config.Namespace())
			// Always a deadline, never a sleep.
			if err := wait.For(available, wait.WithTimeout(limit), wait.WithImmediate()); err != nil {
				t.Fatal(err)
			}
			return ctx
		}).
		Assess("EXTERNAL-IP lists every node", func(ctx context.Context, t *testing.T, config *envconf.Config) context.Context {
			err := cluster.Await(bounded(ctx, t), func(ctx context.Context) error {
				addrs, err := shared.Published(ctx, config.Namespace(), app)
				if err == nil && len(addrs) != 2*len(everyNode) {
					err = fmt.Errorf("published: %v", addrs)
				}
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			return ctx
		}).
		Assess("the client outside is answered by what is listed", func(ctx context.Context, t *testing.T, config *envconf.Config) context.Context {
			addrs, err := shared.Published(ctx, config.Namespace(), app)
			if err != nil {
				t.Fatal(err)
			}
			for _, addr := range addrs {
				// Ask dials from the client's namespace, and fails if the pod saw another source than the client's address.
				err := cluster.Await(bounded(ctx, t), func(ctx context.Context) error {
					_, err := shared.Ask(ctx, "client", netip.AddrPortFrom(addr, port))
					return err
				})
				if err != nil {
					t.Errorf("%s: %v", addr, err)
				}
			}
			return ctx
		}).
		Feature())
}

// bounded ends with the test, or after the time that a spec waits.
func bounded(ctx context.Context, t *testing.T) context.Context {
	ctx, cancel := context.WithTimeout(ctx, limit)
	t.Cleanup(cancel)
	return ctx
}
