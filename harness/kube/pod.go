// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"context"
	"fmt"
	"net/netip"
	"slices"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/beep-lb/beep/harness/topo"
)

// Namespace is where PodOf's pods are, and where specs keep their Services unless they test namespaces.
const Namespace = "default"

// PodOf is the Pod of a topology's pod, as the API server would show it while it runs: bound to its node, with all
// its addresses, ready, labelled app=NAME. Its container's image is a word, as nothing pulls it.
func PodOf(plan *topo.Plan, name string) *corev1.Pod {
	pod := plan.Pod(name)
	object := &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: Namespace, Labels: map[string]string{"app": name}},
		Spec:       corev1.PodSpec{NodeName: pod.Node, Containers: []corev1.Container{{Name: "server", Image: "a-namespace"}}},
	}
	SetRunning(object, plan.Addrs(name), plan.Addrs(pod.Node), true)
	return object
}

// SetRunning writes into a pod's status what a kubelet does when its containers run, and are ready or not. Of the
// addresses it takes the first of each family, IPv4 first: the API server takes no more.
func SetRunning(pod *corev1.Pod, addrs, hostAddrs []netip.Addr, ready bool) {
	status := &pod.Status
	status.PodIPs, status.HostIPs = nil, nil
	for _, addr := range firstOfFamilies(addrs) {
		status.PodIPs = append(status.PodIPs, corev1.PodIP{IP: addr.String()})
	}
	for _, addr := range firstOfFamilies(hostAddrs) {
		status.HostIPs = append(status.HostIPs, corev1.HostIP{IP: addr.String()})
	}
	status.PodIP, status.HostIP = status.PodIPs[0].IP, status.HostIPs[0].IP
	status.Phase = corev1.PodRunning
	status.StartTime = new(metav1.Now())
	setReady(pod, ready)
}

func firstOfFamilies(addrs []netip.Addr) []netip.Addr {
	var first []netip.Addr
	for _, family := range []topo.Families{topo.V4, topo.V6} {
		if i := slices.IndexFunc(addrs, family.Has); i >= 0 {
			first = append(first, addrs[i])
		}
	}
	return first
}

// RunPods posts all pods of a plan, labelled app=NAME and with further labels of all of them; nil for none.
func (c *ControlPlane) RunPods(ctx context.Context, plan *topo.Plan, labels map[string]string) error {
	for _, pod := range plan.Pods {
		object := PodOf(plan, pod.Name)
		for key, value := range labels {
			object.Labels[key] = value
		}
		if err := c.RunPod(ctx, object); err != nil {
			return err
		}
	}
	return nil
}

// RunPod posts a pod that is bound to its node already, and then its status, which it has after the return.
func (c *ControlPlane) RunPod(ctx context.Context, pod *corev1.Pod) error {
	pods := c.Client.CoreV1().Pods(pod.Namespace)
	created, err := pods.Create(ctx, pod, metav1.CreateOptions{})
	if err != nil {
		return fmt.Errorf("post pod %s: %w", pod.Name, err)
	}
	// Creation drops the status; posting it is the kubelet's part.
	created.Status = pod.Status
	if _, err := pods.UpdateStatus(ctx, created, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("post the status of pod %s: %w", pod.Name, err)
	}
	return nil
}

// SetReady has a pod's readiness probe succeed or fail.
func (c *ControlPlane) SetReady(ctx context.Context, namespace, name string, ready bool) error {
	pods := c.Client.CoreV1().Pods(namespace)
	pod, err := pods.Get(ctx, name, metav1.GetOptions{})
	if err != nil {
		return fmt.Errorf("readiness of pod %s: %w", name, err)
	}
	setReady(pod, ready)
	if _, err := pods.UpdateStatus(ctx, pod, metav1.UpdateOptions{}); err != nil {
		return fmt.Errorf("readiness of pod %s: %w", name, err)
	}
	return nil
}

// TerminatePod asks for a pod's end: it stays, terminating, and serves while it is ready, until RemovePod.
func (c *ControlPlane) TerminatePod(ctx context.Context, namespace, name string) error {
	return c.deletePod(ctx, namespace, name, metav1.DeleteOptions{})
}

// RemovePod removes a pod, as a kubelet does when its containers have ended.
func (c *ControlPlane) RemovePod(ctx context.Context, namespace, name string) error {
	now := int64(0)
	return c.deletePod(ctx, namespace, name, metav1.DeleteOptions{GracePeriodSeconds: &now})
}

func (c *ControlPlane) deletePod(ctx context.Context, namespace, name string, options metav1.DeleteOptions) error {
	if err := c.Client.CoreV1().Pods(namespace).Delete(ctx, name, options); err != nil {
		return fmt.Errorf("delete pod %s: %w", name, err)
	}
	return nil
}

func setReady(pod *corev1.Pod, ready bool) {
	status := corev1.ConditionFalse
	if ready {
		status = corev1.ConditionTrue
	}
	for _, kind := range []corev1.PodConditionType{corev1.PodReady, corev1.ContainersReady} {
		pod.Status.Conditions = slices.DeleteFunc(pod.Status.Conditions, func(c corev1.PodCondition) bool { return c.Type == kind })
		pod.Status.Conditions = append(pod.Status.Conditions, corev1.PodCondition{
			Type: kind, Status: status, LastTransitionTime: metav1.Now(),
		})
	}
}

// AwaitEndpoints waits until the EndpointSlices of a Service have so many ready addresses, over both families.
func (c *ControlPlane) AwaitEndpoints(ctx context.Context, namespace, service string, count int) error {
	return c.ControllerManager.Await(ctx, func(ctx context.Context) error {
		list, err := c.Client.DiscoveryV1().EndpointSlices(namespace).List(ctx, metav1.ListOptions{
			LabelSelector: discoveryv1.LabelServiceName + "=" + service,
		})
		if err != nil {
			return err
		}
		ready := 0
		for _, slice := range list.Items {
			for _, endpoint := range slice.Endpoints {
				if endpoint.Conditions.Ready == nil || *endpoint.Conditions.Ready {
					ready += len(endpoint.Addresses)
				}
			}
		}
		if ready != count {
			return fmt.Errorf("service %s has %d ready addresses, want %d", service, ready, count)
		}
		return nil
	})
}
