// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"fmt"
	"maps"
	"slices"
	"sync"

	corev1 "k8s.io/api/core/v1"
	v1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/tools/cache"

	"github.com/beep-lb/beep/src/model"
)

// few is the number of things below which a departure of more than half is no mass departure: two of three.
const few = 4

// row is a value of the model that knows whether another one asks for the same.
type row[V any] interface{ Equal(V) bool }

// table holds the objects of one kind as values, fed by a client-go reflector: its Replace is a whole list, which the
// queue of a shared informer would hand on object by object. O is the API's type, V is what the model has of it.
type table[O v1.Object, V row[V]] struct {
	kind string
	// strip drops what convert does not read, so that a list in the making takes less memory.
	strip func(O)
	// convert makes the value, which nobody changes any more.
	convert func(O) V
	// weigh counts what is lost with an object.
	weigh func(V) int
	// doubt says what else speaks against a list; it may be nil.
	doubt func(list map[string]V) string
	// changed is called after every change of what values returns, without the lock.
	changed func()
	// doubted is called with the reason when a list is held back, without the lock. Whoever is called answers with
	// confirm.
	doubted func(reason string)
	// asking is how the API server answers.
	asking grumbler

	lock sync.Mutex
	// rows are as the API server says.
	rows map[string]V
	// believed are the rows from before the list that is held back; nil if none is.
	believed map[string]V
	// held says that a list is held back, and why.
	held   bool
	reason string
	// complete says that a list was believed.
	complete bool
}

var _ cache.TransformingStore = &table[*corev1.Node, *model.Node]{}

// values returns the rows that are believed, in any order. ok is false before the first list is.
func (t *table[O, V]) values() (values []V, ok bool) {
	t.lock.Lock()
	defer t.lock.Unlock()
	rows := t.rows
	if t.held {
		rows = t.believed
	}
	return slices.AppendSeq(make([]V, 0, len(rows)), maps.Values(rows)), t.complete
}

// Replace takes a whole list in, or holds it back if it is not to be believed at once.
func (t *table[O, V]) Replace(objects []interface{}, _ string) error {
	list := make(map[string]V, len(objects))
	for _, object := range objects {
		key, value, err := t.read(object)
		if err != nil {
			return err
		}
		list[key] = value
	}
	t.lock.Lock()
	before := t.rows
	if t.held {
		before = t.believed
	}
	t.rows = list
	reason := t.implausible(before, list)
	if reason != "" {
		t.believed, t.held, t.reason = before, true, reason
		t.lock.Unlock()
		t.doubted(reason)
		return nil
	}
	t.believed, t.held, t.complete = nil, false, true
	t.lock.Unlock()
	t.changed()
	return nil
}

// confirm judges the list that is held back by a second read. If that is implausible too, the API server means what
// it says. If it is not, the first read was wrong, and the second takes its place; events that the reflector has
// still to bring are older than the second read and end in the same state. It returns whether the first was right.
func (t *table[O, V]) confirm(second []O) bool {
	list := make(map[string]V, len(second))
	for _, object := range second {
		list[cache.MetaObjectToName(object).String()] = t.convert(object)
	}
	t.lock.Lock()
	if !t.held {
		t.lock.Unlock()
		return true // a later list was believed
	}
	right := t.implausible(t.believed, list) != ""
	if !right {
		t.rows = list
	}
	t.believed, t.held, t.complete = nil, false, true
	t.lock.Unlock()
	t.changed()
	return right
}

// implausible says why a list is not to be believed at once, or nothing.
func (t *table[O, V]) implausible(before, list map[string]V) string {
	had, has := 0, 0
	for key, value := range before {
		had += t.weigh(value)
		if now, remains := list[key]; remains {
			has += min(t.weigh(value), t.weigh(now))
		}
	}
	if had >= few && has*2 < had {
		return fmt.Sprintf("%d of %d are gone at once", had-has, had)
	}
	if t.doubt != nil {
		return t.doubt(list)
	}
	return ""
}

// fault says why the list is not as the API server has it, or nil.
func (t *table[O, V]) fault() error {
	failure := t.asking.fault()
	t.lock.Lock()
	defer t.lock.Unlock()
	switch {
	case failure != nil:
		return fmt.Errorf("%s: the API server cannot be asked: %w", t.kind, failure)
	case t.held:
		return fmt.Errorf("%s: the list is held back until a second read confirms it: %s", t.kind, t.reason)
	case !t.complete:
		return fmt.Errorf("%s: the API server has not answered yet", t.kind)
	}
	return nil
}

// Add takes one object in.
func (t *table[O, V]) Add(object interface{}) error { return t.Update(object) }

// Update takes one object in. A difference that asks for nothing, as a heartbeat, is no change.
func (t *table[O, V]) Update(object interface{}) error {
	key, value, err := t.read(object)
	if err != nil {
		return err
	}
	t.lock.Lock()
	before, known := t.rows[key]
	t.rows[key] = value
	visible := !t.held && (!known || !before.Equal(value))
	t.lock.Unlock()
	if visible {
		t.changed()
	}
	return nil
}

// Delete lets one object go.
func (t *table[O, V]) Delete(object interface{}) error {
	key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object)
	if err != nil {
		return fmt.Errorf("%s: %w", t.kind, err)
	}
	t.lock.Lock()
	_, known := t.rows[key]
	delete(t.rows, key)
	visible := !t.held && known
	t.lock.Unlock()
	if visible {
		t.changed()
	}
	return nil
}

// Resync has nothing to do: nothing is forgotten.
func (t *table[O, V]) Resync() error { return nil }

// Transformer is strip, in the form that a reflector wants.
func (t *table[O, V]) Transformer() cache.TransformFunc {
	return func(object interface{}) (interface{}, error) {
		if known, ok := object.(O); ok {
			t.strip(known)
		}
		return object, nil
	}
}

// read makes an object a row.
func (t *table[O, V]) read(object interface{}) (string, V, error) {
	known, ok := object.(O)
	if !ok {
		var none V
		return "", none, fmt.Errorf("%s: the API server sent a %T", t.kind, object)
	}
	return cache.MetaObjectToName(known).String(), t.convert(known), nil
}
