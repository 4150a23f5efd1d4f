// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"errors"
	"fmt"
	"hash/fnv"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
)

const (
	// eventsAtOnce bounds the Events of one round: publishing comes first, and the rest in the next round.
	eventsAtOnce = 20
	// nextRound is when that is.
	nextRound = time.Second
	// nameLimit is the longest name of an object (RFC 1123 subdomain), in bytes, less what makes it unique.
	nameLimit = 253 - 17
)

// Events writes Events, each once: their names are made of what they say, so one that is there already, by whomever
// written, is not written again. It is for one goroutine.
type Events struct {
	client typedcorev1.EventsGetter
	node   string
	now    func() time.Time
	// told are the names of those that are there.
	told map[string]bool
}

// NewEvents prepares to write Events. node is who reports them.
func NewEvents(client typedcorev1.EventsGetter, node string) *Events {
	return &Events{client: client, node: node, now: time.Now, told: map[string]bool{}}
}

// Event is something that a person must act on.
type Event struct {
	// About is the Service, or the Node.
	About corev1.ObjectReference
	// Reason is the CamelCase name of what it is.
	Reason string
	// Key tells it from other Events of that reason about the same object.
	Key string
	// Message says what and why, and what to do.
	Message string
}

// OfService is what an Event about a Service is about.
func OfService(service *model.Service) corev1.ObjectReference {
	return corev1.ObjectReference{
		APIVersion: "v1", Kind: "Service", Namespace: service.Namespace, Name: service.Name, UID: types.UID(service.UID),
	}
}

// OfNode is what an Event about a Node is about. The UID is the name, as kubelets write it and kubectl looks for it.
func OfNode(name string) corev1.ObjectReference {
	return corev1.ObjectReference{APIVersion: "v1", Kind: "Node", Name: name, UID: types.UID(name)}
}

// EventOf is the Event of a reason. Reasons that differ in an endpoint alone are one Event.
func EventOf(about corev1.ObjectReference, reason compile.Reason) Event {
	key := fmt.Sprint(reason.Port, reason.Proto)
	if !reason.Addr.IsValid() {
		key += reason.Detail
	}
	return Event{about, reason.Code.String(), key, fmt.Sprintf("%s: %s; %s", reason.Subject(), reason.Text(), reason.Remedy())}
}

// Tell writes those of the Events that are not there, and forgets those that are over. again is when to call it again;
// zero is when something changes. The error is that of the last one that could not be written.
func (e *Events) Tell(ctx context.Context, events []Event) (again time.Time, err error) {
	current := map[string]bool{}
	budget := eventsAtOnce
	for _, event := range events {
		name := event.name()
		if current[name] {
			continue
		}
		if e.told[name] {
			current[name] = true
			continue
		}
		if budget--; budget < 0 {
			again = e.now().Add(nextRound)
			continue
		}
		if writeErr := e.write(ctx, name, event); writeErr != nil {
			err = writeErr
			continue
		}
		current[name] = true
	}
	e.told = current
	return again, err
}

// name is made of what the Event says and of whom.
func (e *Event) name() string {
	hash := fnv.New64a()
	fmt.Fprint(hash, e.About.Kind, "\x00", e.About.UID, "\x00", e.Reason, "\x00", e.Key) // cannot fail, says its documentation
	return fmt.Sprintf("%s.%016x", e.About.Name[:min(len(e.About.Name), nameLimit)], hash.Sum64())
}

func (e *Events) write(ctx context.Context, name string, event Event) error {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	namespace := event.About.Namespace
	if namespace == "" {
		namespace = metav1.NamespaceDefault // where kubectl looks for those of Nodes
	}
	now := metav1.NewTime(e.now())
	_, err := e.client.Events(namespace).Create(ctx, &corev1.Event{
		ObjectMeta:     metav1.ObjectMeta{Name: name, Namespace: namespace},
		InvolvedObject: event.About, Reason: event.Reason, Message: event.Message, Type: corev1.EventTypeWarning,
		FirstTimestamp: now, LastTimestamp: now, Count: 1,
		Source: corev1.EventSource{Component: "beep", Host: e.node}, ReportingController: "beep-lb/controller", ReportingInstance: e.node,
		Action: "Reconcile",
	}, metav1.CreateOptions{})
	switch {
	case err == nil, apierrors.IsAlreadyExists(err):
		return nil
	case apierrors.IsNotFound(err), apierrors.HasStatusCause(err, corev1.NamespaceTerminatingCause):
		return nil // the namespace goes, and the Service with it
	case errors.Is(err, context.Canceled):
		return err
	}
	return fmt.Errorf("event %s about %s %s: %w", event.Reason, event.About.Kind, event.About.Name, err)
}
