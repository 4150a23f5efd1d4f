// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/watch"
	"k8s.io/client-go/tools/cache"
)

const (
	// complainEvery is how often a failure that goes on is logged.
	complainEvery = time.Minute
	// secondRead is how long after an implausible list the second read comes, and comes again if it fails.
	secondRead = 2 * time.Second
	// readTimeout bounds a second read.
	readTimeout = 30 * time.Second
)

type (
	listFunc  func(context.Context, metav1.ListOptions) (runtime.Object, error)
	watchFunc func(context.Context, metav1.ListOptions) (watch.Interface, error)
)

// resource is how the API server is asked for the objects of one kind.
type resource struct {
	list   listFunc
	watch  watchFunc
	narrow func(*metav1.ListOptions)
}

// feed prepares to keep a table as the API server says, and to ring when it changes. O is the type of example.
func feed[O interface {
	metav1.Object
	runtime.Object
}, V row[V]](t *table[O, V], example O, from resource, bell *bell, log *slog.Logger) func(context.Context) {
	log = log.With("list", t.kind)
	watched := &t.asking
	watched.log = log
	ask := &cache.ListWatch{
		ListWithContextFunc: func(ctx context.Context, options metav1.ListOptions) (runtime.Object, error) {
			from.narrow(&options)
			list, err := from.list(ctx, options)
			watched.heard(err)
			return list, err
		},
		WatchFuncWithContext: func(ctx context.Context, options metav1.ListOptions) (watch.Interface, error) {
			from.narrow(&options)
			events, err := from.watch(ctx, options)
			watched.heard(err)
			return events, err
		},
	}
	t.changed = bell.ring
	t.rows = map[string]V{}
	return func(ctx context.Context) {
		var group sync.WaitGroup
		defer group.Wait()
		t.doubted = func(reason string) {
			log.Warn("held back, reading a second time", "reason", reason)
			group.Go(func() { confirm(ctx, t, from, log) })
		}
		cache.NewReflectorWithOptions(ask, example, t, cache.ReflectorOptions{Name: t.kind}).RunWithContext(ctx)
	}
}

// confirm reads a list until it gets one, past every cache, and has the table judge by it.
func confirm[O metav1.Object, V row[V]](ctx context.Context, t *table[O, V], from resource, log *slog.Logger) {
	for {
		select {
		case <-ctx.Done():
			return
		case <-time.After(secondRead):
		}
		second, err := readAll[O](ctx, from)
		if err != nil {
			log.Warn("second read failed, what was known stays", "error", err)
			continue
		}
		if t.confirm(second) {
			log.Warn("confirmed by the second read")
		} else {
			log.Warn("the second read says otherwise, and is believed")
		}
		return
	}
}

// readAll reads a list from the API server's storage: without a resourceVersion its caches do not answer for
// themselves.
func readAll[O metav1.Object](ctx context.Context, from resource) ([]O, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	var options metav1.ListOptions
	from.narrow(&options)
	list, err := from.list(ctx, options)
	if err != nil {
		return nil, err
	}
	objects, err := meta.ExtractList(list)
	if err != nil {
		return nil, err
	}
	items := make([]O, 0, len(objects))
	for _, object := range objects {
		item, ok := object.(O)
		if !ok {
			return nil, fmt.Errorf("the API server sent a %T", object)
		}
		items = append(items, item)
	}
	return items, nil
}

// grumbler logs a failure that goes on once in a while, and its end.
type grumbler struct {
	log *slog.Logger

	lock sync.Mutex
	// failure is the last one of those that go on, nil if all is well, and last is when one was logged.
	failure error
	last    time.Time
}

// fault is the failure that goes on, or nil.
func (g *grumbler) fault() error {
	g.lock.Lock()
	defer g.lock.Unlock()
	return g.failure
}

// heard takes the result of a request.
func (g *grumbler) heard(err error) {
	g.lock.Lock()
	defer g.lock.Unlock()
	switch {
	case err == nil && g.failure == nil:
	case err == nil:
		g.log.Info("the API server answers again")
		g.last, g.failure = time.Time{}, nil
	case errors.Is(err, context.Canceled), apierrors.IsResourceExpired(err), apierrors.IsGone(err):
		// An old resourceVersion is everyday life: the reflector lists anew.
	default:
		g.failure = err
		if time.Since(g.last) >= complainEvery {
			g.log.Error("the API server cannot be asked, trying on; what is known stays in force", "error", err)
			g.last = time.Now()
		}
	}
}
