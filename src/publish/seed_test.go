// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"log/slog"
	"os"
	"strings"
	"sync"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/wait"
	"k8s.io/client-go/kubernetes"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/require"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

const namespace = "beep-system"

// server is a real API server with beep's namespace.
type server struct {
	t *testing.T
	*kube.ControlPlane
}

func newServer(t *testing.T) *server {
	t.Helper()
	s := &server{t, kube.Start(t, kube.Options{})}
	_, err := s.Client.CoreV1().Namespaces().Create(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}, metav1.CreateOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return s
}

// as is a client of a user who may do all, or with a Role in beep's namespace only that.
func (s *server) as(user string, rules ...rbacv1.PolicyRule) kubernetes.Interface {
	s.t.Helper()
	var groups []string
	if len(rules) == 0 {
		groups = []string{"system:masters"}
	}
	config, err := s.Config(user, groups...)
	if err != nil {
		s.t.Fatal(err)
	}
	client, err := kubernetes.NewForConfig(config)
	if err != nil {
		s.t.Fatal(err)
	}
	if len(rules) > 0 {
		meta := metav1.ObjectMeta{Name: user}
		_, err := s.Client.RbacV1().Roles(namespace).Create(s.t.Context(), &rbacv1.Role{ObjectMeta: meta, Rules: rules}, metav1.CreateOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		_, err = s.Client.RbacV1().RoleBindings(namespace).Create(s.t.Context(), &rbacv1.RoleBinding{
			ObjectMeta: meta, RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: user},
			Subjects: []rbacv1.Subject{{APIGroup: rbacv1.GroupName, Kind: rbacv1.UserKind, Name: user}},
		}, metav1.CreateOptions{})
		if err != nil {
			s.t.Fatal(err)
		}
		s.awaitRights(client, rules)
	}
	return client
}

// awaitRights waits until the API server knows of the rights: it reads roles by a watch of its own.
func (s *server) awaitRights(client kubernetes.Interface, rules []rbacv1.PolicyRule) {
	s.t.Helper()
	for _, rule := range rules {
		review := &authorizationv1.SelfSubjectAccessReview{Spec: authorizationv1.SelfSubjectAccessReviewSpec{
			ResourceAttributes: &authorizationv1.ResourceAttributes{
				Namespace: namespace, Verb: rule.Verbs[0], Group: rule.APIGroups[0], Resource: rule.Resources[0],
				Name: strings.Join(rule.ResourceNames, ""),
			},
		}}
		err := wait.PollUntilContextTimeout(s.t.Context(), 10*time.Millisecond, time.Minute, true, func(ctx context.Context) (bool, error) {
			answer, err := client.AuthorizationV1().SelfSubjectAccessReviews().Create(ctx, review, metav1.CreateOptions{})
			return err == nil && answer.Status.Allowed, err
		})
		if err != nil {
			s.t.Fatalf("right to %v: %v", rule, err)
		}
	}
}

func secretRule(verbs ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: verbs}
}

var discard = slog.New(slog.DiscardHandler)

func unheard(error) {}

func TestSeed(t *testing.T) {
	s := newServer(t)
	secrets := s.Client.CoreV1().Secrets(namespace)

	t.Run("thirty who start at once agree", func(t *testing.T) {
		client := s.as("first").CoreV1().Secrets(namespace)
		var group sync.WaitGroup
		seeds := make([][16]byte, 30)
		for i := range seeds {
			group.Go(func() {
				seed, err := OpenSeed(t.Context(), client, discard, unheard)
				if err != nil {
					t.Error(err)
					return
				}
				seeds[i] = seed.Value()
			})
		}
		group.Wait()
		for _, seed := range seeds {
			if seed != seeds[0] || seed == [16]byte{} {
				t.Fatalf("%x and %x", seed, seeds[0])
			}
		}
	})

	t.Run("whoever may read it needs no other right", func(t *testing.T) {
		client := s.as("reader", secretRule("get")).CoreV1().Secrets(namespace)
		if _, err := OpenSeed(t.Context(), client, discard, unheard); err != nil {
			t.Error(err)
		}
	})

	t.Run("it is created again as it was, and a new one is taken over", func(t *testing.T) {
		seed, err := OpenSeed(t.Context(), secrets, discard, unheard)
		if err != nil {
			t.Fatal(err)
		}
		before := seed.Value()
		if err := secrets.Delete(t.Context(), SeedSecret, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		if after, err := seed.read(t.Context()); err != nil || after != before {
			t.Errorf("%x, want %x: %v", after, before, err)
		}
		secret, err := secrets.Get(t.Context(), SeedSecret, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		secret.Data[seedKey] = []byte("0123456789abcdef")
		if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if after, err := seed.read(t.Context()); err != nil || string(after[:]) != "0123456789abcdef" {
			t.Errorf("%x: %v", after, err)
		}
	})

	t.Run("a Secret of another form is refused", func(t *testing.T) {
		secret, err := secrets.Get(t.Context(), SeedSecret, metav1.GetOptions{})
		if err != nil {
			t.Fatal(err)
		}
		secret.Data[seedKey] = []byte("short")
		if _, err := secrets.Update(t.Context(), secret, metav1.UpdateOptions{}); err != nil {
			t.Fatal(err)
		}
		if _, err := OpenSeed(t.Context(), secrets, discard, unheard); err == nil || !strings.Contains(err.Error(), `has 5 bytes under "seed" and not 16`) {
			t.Errorf("%v", err)
		}
	})

	t.Run("without the right it fails, and names the right", func(t *testing.T) {
		if err := secrets.Delete(t.Context(), SeedSecret, metav1.DeleteOptions{}); err != nil {
			t.Fatal(err)
		}
		ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
		defer cancel()
		_, err := OpenSeed(ctx, s.as("creator-not", secretRule("get")).CoreV1().Secrets(namespace), discard, unheard)
		if err == nil || !strings.Contains(err.Error(), `cannot create resource "secrets"`) {
			t.Errorf("%v", err)
		}
		_, err = OpenSeed(ctx, s.as("reader-not", secretRule("list")).CoreV1().Secrets(namespace), discard, unheard)
		if err == nil || !strings.Contains(err.Error(), `cannot get resource "secrets"`) {
			t.Errorf("%v", err)
		}
	})

	t.Run("an API server that is away is waited for", func(t *testing.T) {
		ctx, cancel := context.WithTimeout(t.Context(), 2*time.Second)
		defer cancel()
		if err := s.APIServer.Kill9(); err != nil {
			t.Fatal(err)
		}
		var why error
		if _, err := OpenSeed(ctx, secrets, discard, func(err error) { why = err }); err == nil || ctx.Err() == nil {
			t.Errorf("gave up: %v", err)
		}
		if why == nil || !strings.Contains(why.Error(), "connection refused") {
			t.Errorf("it waits because of %v", why)
		}
	})
}
