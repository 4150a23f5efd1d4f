// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/informers"
	listers "k8s.io/client-go/listers/core/v1"
	"k8s.io/client-go/tools/cache"
	"k8s.io/client-go/util/workqueue"

	"github.com/beep-lb/beep/harness/kube"
)

// workers are how many pods are worked on at once: making a namespace is mostly waiting for the kernel.
const workers = 4

// kubelets are the kubelets of all nodes, and the scheduler. They follow the Pods: what is not bound is bound, what is
// bound gets a namespace with servers, and a status that says so; what is deleted serves on until its grace has passed.
type kubelets struct {
	c        *Cluster
	queue    workqueue.TypedRateLimitingInterface[string]
	pods     listers.PodLister
	informer informers.SharedInformerFactory
	stop     context.CancelFunc
	working  sync.WaitGroup

	mu      sync.Mutex
	off     map[string]bool         // nodes whose kubelet is silent
	running map[string]*running     // by the pod's namespace/name
	bound   map[types.UID]placement // what the informer may not show yet
	numbers map[string]int          // the number that a node gave last
}

// startKubelets starts to follow, and returns when what exists is known.
func startKubelets(ctx context.Context, c *Cluster) (*kubelets, error) {
	patience := workqueue.NewTypedItemExponentialFailureRateLimiter[string](20*time.Millisecond, time.Second)
	k := &kubelets{
		c: c, queue: workqueue.NewTypedRateLimitingQueue(patience),
		off: map[string]bool{}, running: map[string]*running{}, bound: map[types.UID]placement{}, numbers: map[string]int{},
	}
	k.informer = informers.NewSharedInformerFactory(c.Control.Client, 0)
	pods := k.informer.Core().V1().Pods()
	k.pods = pods.Lister()
	note := func(object interface{}) {
		if key, err := cache.DeletionHandlingMetaNamespaceKeyFunc(object); err == nil {
			k.queue.Add(key)
		}
	}
	_, err := pods.Informer().AddEventHandler(cache.ResourceEventHandlerFuncs{
		AddFunc: note, UpdateFunc: func(_, next interface{}) { note(next) }, DeleteFunc: note,
	})
	if err != nil {
		return nil, fmt.Errorf("kubelets: %w", err)
	}
	life, stop := context.WithCancel(context.Background())
	k.stop = stop
	k.informer.Start(life.Done())
	for range workers {
		k.working.Go(func() { k.work(life) })
	}
	if !cache.WaitForCacheSync(ctx.Done(), pods.Informer().HasSynced) {
		k.close()
		return nil, fmt.Errorf("kubelets: list the pods: %w", context.Cause(ctx))
	}
	return k, nil
}

func (k *kubelets) close() {
	k.stop()
	k.queue.ShutDown()
	k.working.Wait()
	k.informer.Shutdown()
}

// set has the kubelet of a node work or do nothing at all.
func (k *kubelets) set(node string, on bool) {
	k.mu.Lock()
	k.off[node] = !on
	k.mu.Unlock()
	if !on {
		return
	}
	for _, key := range k.informer.Core().V1().Pods().Informer().GetStore().ListKeys() {
		k.queue.Add(key)
	}
}

func (k *kubelets) isOff(node string) bool {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.off[node]
}

func (k *kubelets) work(ctx context.Context) {
	for {
		key, over := k.queue.Get()
		if over {
			return
		}
		again, err := k.sync(ctx, key)
		switch {
		case err != nil:
			// A conflict, or an API server that is away: a kubelet tries on.
			k.queue.AddRateLimited(key)
		case again > 0:
			k.queue.AddAfter(key, again)
		default:
			k.queue.Forget(key)
		}
		k.queue.Done(key)
	}
}

// sync brings one pod to what its object says, and returns after what time there is more to do.
func (k *kubelets) sync(ctx context.Context, key string) (again time.Duration, err error) {
	namespace, name, err := cache.SplitMetaNamespaceKey(key)
	if err != nil {
		return 0, err
	}
	pod, err := k.pods.Pods(namespace).Get(name)
	if err != nil && !apierrors.IsNotFound(err) {
		return 0, err
	}
	gone := err != nil
	runs := k.find(key)
	if runs != nil && (gone || pod.UID != runs.uid) {
		if k.isOff(runs.node) {
			return 0, nil
		}
		if err := k.end(key, runs); err != nil {
			return 0, err
		}
		runs = nil
	}
	switch {
	case gone || k.c.Pod(name) != nil || ended(pod):
		return 0, nil
	case pod.Spec.NodeName == "":
		return 0, k.bind(ctx, pod)
	case k.isOff(pod.Spec.NodeName):
		return 0, nil
	case pod.DeletionTimestamp != nil:
		return k.terminate(ctx, key, pod, runs)
	case runs == nil:
		if runs, err = k.begin(key, pod); err != nil {
			return 0, err
		}
	}
	return k.post(ctx, pod, runs)
}

func ended(pod *corev1.Pod) bool {
	return pod.Status.Phase == corev1.PodSucceeded || pod.Status.Phase == corev1.PodFailed
}

func (k *kubelets) find(key string) *running {
	k.mu.Lock()
	defer k.mu.Unlock()
	return k.running[key]
}

// terminate ends a pod when its grace has passed: its servers are such that use all of it.
func (k *kubelets) terminate(ctx context.Context, key string, pod *corev1.Pod, runs *running) (time.Duration, error) {
	if wait := time.Until(pod.DeletionTimestamp.Time); runs != nil && wait > 0 {
		return wait, nil
	}
	if runs != nil {
		if err := k.end(key, runs); err != nil {
			return 0, err
		}
	}
	now := int64(0)
	err := k.c.Control.Client.CoreV1().Pods(pod.Namespace).Delete(ctx, pod.Name, metav1.DeleteOptions{
		GracePeriodSeconds: &now, Preconditions: &metav1.Preconditions{UID: &pod.UID},
	})
	if apierrors.IsNotFound(err) || apierrors.IsConflict(err) {
		return 0, nil // it is gone, or another one has the name
	}
	return 0, err
}

// post posts that a pod runs, and when its readiness probe would have succeeded, that it is ready; without a probe both
// at once. From then on its readiness is a spec's.
func (k *kubelets) post(ctx context.Context, pod *corev1.Pod, runs *running) (again time.Duration, err error) {
	if runs.ready {
		return 0, nil
	}
	wait := time.Until(runs.begun.Add(probeDelay(pod)))
	if wait > 0 && runs.posted {
		return wait, nil
	}
	next := pod.DeepCopy()
	kube.SetRunning(next, runs.addrs, k.c.Addrs(runs.node), wait <= 0)
	_, err = k.c.Control.Client.CoreV1().Pods(pod.Namespace).UpdateStatus(ctx, next, metav1.UpdateOptions{})
	if apierrors.IsNotFound(err) {
		return 0, nil
	}
	if err != nil {
		return 0, err
	}
	runs.posted, runs.ready = true, wait <= 0
	return max(wait, 0), nil
}

// probeDelay is how long after its start a pod's readiness probe succeeds.
func probeDelay(pod *corev1.Pod) time.Duration {
	delay := time.Duration(0)
	for _, container := range pod.Spec.Containers {
		if probe := container.ReadinessProbe; probe != nil {
			delay = max(delay, time.Duration(probe.InitialDelaySeconds)*time.Second)
		}
	}
	return delay
}

// end takes a pod's namespace away, and everything in it.
func (k *kubelets) end(key string, runs *running) error {
	k.mu.Lock()
	delete(k.running, key)
	k.mu.Unlock()
	var errs []error
	for _, stop := range runs.stops {
		errs = append(errs, stop())
	}
	if runs.machine != "" {
		errs = append(errs, k.c.RemovePod(runs.machine, runs.node))
	}
	return errors.Join(errs...)
}
