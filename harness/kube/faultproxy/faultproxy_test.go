// SPDX-License-Identifier: Apache-2.0

package faultproxy_test

import (
	"context"
	"errors"
	"fmt"
	"net/netip"
	"os"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/cenkalti/backoff/v5"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/kubernetes"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/harness/kube/faultproxy"
	"github.com/beep-lb/beep/harness/require"
)

func TestMain(m *testing.M) { os.Exit(require.Main(m)) }

var secrets = schema.GroupResource{Resource: "secrets"}

// suite is a control plane with a proxy before it, and a client of each.
type suite struct {
	*testing.T
	ctx             context.Context
	control         *kube.ControlPlane
	proxy           *faultproxy.Proxy
	behind, through kubernetes.Interface
}

func (s *suite) must(err error) {
	s.Helper()
	if err != nil {
		s.Fatal(err)
	}
}

func (s *suite) create(name string) {
	s.Helper()
	_, err := s.behind.CoreV1().Secrets("default").Create(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: name}}, metav1.CreateOptions{})
	s.must(err)
}

func (s *suite) eventually(ask func() error) {
	s.Helper()
	_, err := backoff.Retry(s.ctx, func() (struct{}, error) { return struct{}{}, ask() },
		backoff.WithBackOff(backoff.NewConstantBackOff(20*time.Millisecond)), backoff.WithMaxElapsedTime(30*time.Second))
	s.must(err)
}

// follow begins a watch of what is made from now on.
func (s *suite) follow() watch.Interface {
	s.Helper()
	list, err := s.through.CoreV1().Secrets("default").List(s.ctx, metav1.ListOptions{})
	s.must(err)
	events, err := s.through.CoreV1().Secrets("default").Watch(s.ctx, metav1.ListOptions{ResourceVersion: list.ResourceVersion})
	s.must(err)
	return events
}

// next is the name of the object of the next event; empty at the watch's end.
func (s *suite) next(events watch.Interface) string {
	s.Helper()
	select {
	case event := <-events.ResultChan():
		if object, is := event.Object.(*corev1.Secret); is {
			return object.Name
		}
		return "" // an ERROR event, if the end came in the middle
	case <-time.After(30 * time.Second):
		s.Fatal("no event")
		return ""
	}
}

func TestFaults(t *testing.T) {
	control := kube.Start(t, kube.Options{Audit: true})
	proxy, err := faultproxy.Launch(control, 7001)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := proxy.Close(); err != nil {
			t.Error(err)
		}
	})
	config, err := control.Config("somebody", "system:masters")
	if err != nil {
		t.Fatal(err)
	}
	config.Host = "https://" + proxy.Addr().String()
	through, err := kubernetes.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]func(*suite){
		"without a fault, a client is who it is":               (*suite).testIdentity,
		"events that are held come later, all and in order":    (*suite).testHold,
		"a list that is held comes when it may":                (*suite).testHeldList,
		"a delay is a delay":                                   (*suite).testDelay,
		"answers in the API server's place, as often as asked": (*suite).testAnswers,
		"a watch that is broken meets 410":                     (*suite).testExpired,
		"a cut resets and refuses, and a client comes back":    (*suite).testCut,
	} {
		t.Run(name, func(t *testing.T) {
			ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
			defer cancel()
			test(&suite{t, ctx, control, proxy, control.Client, through})
		})
	}
}

func (s *suite) testIdentity() {
	_, err := s.through.CoreV1().Secrets("default").Create(s.ctx, &corev1.Secret{ObjectMeta: metav1.ObjectMeta{Name: "whose"}}, metav1.CreateOptions{})
	s.must(err)
	writes, err := s.control.Writes("somebody")
	s.must(err)
	if len(writes) != 1 || writes[0].Verb != "create" || writes[0].Resource != "secrets" {
		s.Errorf("%v", writes)
	}
	seen := s.proxy.Requests(faultproxy.Match{Verb: "create", Resource: "secrets", Namespace: "default"})
	if len(seen) != 1 || seen[0].User != "somebody" || seen[0].Code != 201 {
		s.Errorf("%v", seen)
	}
}

func (s *suite) testHold() {
	events := s.follow()
	defer events.Stop()
	s.create("hold-before")
	if got := s.next(events); got != "hold-before" {
		s.Fatal(got)
	}
	held := s.proxy.Hold(faultproxy.Match{Verb: "watch", Resource: "secrets"})
	defer held.Lift()
	var want []string
	for i := range 20 {
		want = append(want, fmt.Sprintf("hold-%d", i))
		s.create(want[i])
	}
	s.eventually(func() error {
		if held.Met() == 0 {
			return errors.New("nothing is held")
		}
		return nil
	})
	select {
	case event := <-events.ResultChan():
		s.Errorf("not held: %v", event)
	case <-time.After(time.Second):
	}
	held.Lift()
	var got []string
	for range want {
		got = append(got, s.next(events))
	}
	if !slices.Equal(got, want) {
		s.Errorf("%v", got)
	}
}

func (s *suite) testHeldList() {
	held := s.proxy.Hold(faultproxy.Match{Verb: "list", Resource: "secrets"})
	defer held.Lift()
	answered := make(chan error, 1)
	go func() {
		_, err := s.through.CoreV1().Secrets("default").List(s.ctx, metav1.ListOptions{})
		answered <- err
	}()
	s.eventually(func() error {
		if held.Met() == 0 {
			return errors.New("nothing is held")
		}
		return nil
	})
	select {
	case err := <-answered:
		s.Fatalf("not held: %v", err)
	case <-time.After(500 * time.Millisecond):
	}
	held.Lift()
	s.must(<-answered)
}

func (s *suite) testDelay() {
	const by = 700 * time.Millisecond
	defer s.proxy.Delay(faultproxy.Match{Resource: "secrets"}, by).Lift()
	start := time.Now()
	_, err := s.through.CoreV1().Secrets("default").List(s.ctx, metav1.ListOptions{})
	s.must(err)
	if took := time.Since(start); took < by {
		s.Errorf("after %v", took)
	}
}

func (s *suite) testAnswers() {
	of := faultproxy.Match{Verb: "list", Resource: "secrets"}
	for _, says := range []*apierrors.StatusError{
		apierrors.NewConflict(secrets, "x", errors.New("another version is there")),
		apierrors.NewResourceExpired("too old"),
		apierrors.NewInvalid(schema.GroupKind{Kind: "Secret"}, "x", nil),
		apierrors.NewInternalError(errors.New("disk full")),
	} {
		fault := s.proxy.Answer(of, 1, says)
		_, err := s.through.CoreV1().Secrets("default").List(s.ctx, metav1.ListOptions{})
		var status apierrors.APIStatus
		if !errors.As(err, &status) || status.Status().Reason != says.Status().Reason {
			s.Errorf("%v, want %v", err, says)
		}
		_, err = s.through.CoreV1().Secrets("default").List(s.ctx, metav1.ListOptions{})
		s.must(err)
		fault.Lift()
	}
	// A client of the API server's own makes the best of this one.
	fault := s.proxy.Answer(of, 1, apierrors.NewTooManyRequests("later", 1))
	defer fault.Lift()
	_, err := s.through.CoreV1().Secrets("default").List(s.ctx, metav1.ListOptions{})
	s.must(err)
	if fault.Met() != 1 {
		s.Errorf("met %d", fault.Met())
	}
}

func (s *suite) testExpired() {
	events := s.follow()
	of := faultproxy.Match{Verb: "watch", Resource: "secrets"}
	defer s.proxy.Answer(of, 1, apierrors.NewResourceExpired("too old")).Lift()
	s.proxy.Break(of)
	if got := s.next(events); got != "" {
		s.Errorf("an event: %s", got)
	}
	_, err := s.through.CoreV1().Secrets("default").Watch(s.ctx, metav1.ListOptions{ResourceVersion: "1"})
	if !apierrors.IsResourceExpired(err) {
		s.Errorf("%v", err)
	}
}

func (s *suite) testCut() {
	events := s.follow()
	s.must(s.proxy.Cut())
	if got := s.next(events); got != "" {
		s.Errorf("an event: %s", got)
	}
	if _, err := s.control.NS().DialFrom(s.ctx, "tcp", netip.AddrPort{}, s.proxy.Addr()); !errors.Is(err, syscall.ECONNREFUSED) {
		s.Errorf("%v", err)
	}
	if _, err := s.through.CoreV1().Secrets("default").List(s.ctx, metav1.ListOptions{}); err == nil {
		s.Error("a list from nowhere")
	}
	s.must(s.proxy.Mend())
	s.eventually(func() error {
		_, err := s.through.CoreV1().Secrets("default").List(s.ctx, metav1.ListOptions{})
		return err
	})
}
