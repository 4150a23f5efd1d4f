// SPDX-License-Identifier: Apache-2.0

package main

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/kube"
	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/config"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/publish"
)

// TestEventsOfANode are those that only its own controller can tell of: what does not fit into its maps, and maps that
// resist for longer than an upgrade takes.
func TestEventsOfANode(t *testing.T) {
	control := kube.Start(t, kube.Options{})
	v := &voice{
		c:    &controller{flags: &config.Controller{NodeName: "node-a"}},
		self: compile.Self{Node: "node-a"}, events: publish.NewEvents(control.Client.CoreV1(), "node-a"), news: make(chan struct{}, 1),
	}
	told := func() (again time.Time, events []string) {
		t.Helper()
		again, err := v.tell(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		list, err := control.Client.CoreV1().Events(metav1.NamespaceDefault).List(t.Context(), metav1.ListOptions{
			FieldSelector: "involvedObject.kind=Node,involvedObject.name=node-a,source=beep"})
		if err != nil {
			t.Fatal(err)
		}
		for _, event := range list.Items {
			if event.Type != corev1.EventTypeWarning || event.Source.Host != "node-a" {
				t.Errorf("%s is %s of %s", event.Reason, event.Type, event.Source.Host)
			}
			events = append(events, event.Reason+": "+event.Message)
		}
		slices.Sort(events)
		return again, events
	}

	v.last.Store(&outcome{})
	if _, events := told(); len(events) > 0 {
		t.Errorf("nothing is wrong, and there are %q", events)
	}

	v.last.Store(&outcome{refused: []model.ObjectKey{{Namespace: "shop", Name: "web"}, {Namespace: "shop", Name: "dns"}}})
	told()
	_, events := told()
	if len(events) != 2 {
		t.Fatalf("two Services do not fit, told twice: %q", events)
	}
	for i, service := range []string{"shop/dns", "shop/web"} {
		if !strings.HasPrefix(events[i], "MapFull: ") || !strings.Contains(events[i], service) {
			t.Errorf("%s: %q", service, events[i])
		}
	}

	v.last.Store(&outcome{})
	v.failed(fmt.Errorf("write FRONT_META: %w", errors.New("no space")))
	if again, events := told(); len(events) != 2 || time.Until(again) > troubledAfter {
		t.Errorf("a failure that is new is told of %s from now, with %q", time.Until(again), events)
	}
	v.trouble.Store(&trouble{time.Now().Add(-troubledAfter), v.trouble.Load().err})
	_, events = told()
	if len(events) != 3 || !strings.HasPrefix(events[2], "MapRestoreFailed: Node node-a:") || !strings.Contains(events[2], "FRONT_META: no space") {
		t.Errorf("a failure that goes on: %q", events)
	}
}
