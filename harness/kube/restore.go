// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bytes"
	"context"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/netip"

	"golang.org/x/sync/errgroup"
	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/uuid"
	"k8s.io/client-go/kubernetes/scheme"
)

const (
	// store is where etcd serves, in the control plane's namespace.
	store = "http://127.0.0.1:2379"
	// writers is how many requests are on their way to etcd at once.
	writers = 16
	// firstRestored is the last two bytes of the first restored Service's ClusterIP: the API server hands out others at random, and takes
	// none that is in use.
	firstRestored = 0x8000
)

// Object is one of the kinds that can be restored: Service and EndpointSlice.
type Object interface {
	metav1.Object
	runtime.Object
}

// Restore puts new objects into etcd itself, in no order, as the restore of a backup would; everybody hears of
// them from the API server as of any others. It is for thousands of Services, which an API server takes minutes to create: for each it
// counts the ClusterIPs of all others (k8s.io/kubernetes, pkg/registry/core/service/ipallocator, Used). Nothing looks at the
// objects before: they must be such as admission takes. A Service gets ClusterIPs by its IPFamilyPolicy; its status counts. One that
// exists is an error, with whatever was restored before.
func (c *ControlPlane) Restore(ctx context.Context, objects ...Object) error {
	client := &http.Client{Transport: &http.Transport{DialContext: c.ns.DialContext, MaxIdleConnsPerHost: writers}}
	defer client.CloseIdleConnections()
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(writers)
	for _, object := range objects {
		all := c.complete(object)
		group.Go(func() error {
			// In turn: the API server would make a Service's addresses up for it.
			for _, o := range all {
				if err := restore(ctx, client, o); err != nil {
					return err
				}
			}
			return nil
		})
	}
	return group.Wait()
}

// complete gives an object what the API server would, and returns it with all that belongs to it, which comes first.
func (c *ControlPlane) complete(object Object) []Object {
	object.SetUID(uuid.NewUUID())
	object.SetCreationTimestamp(metav1.Now().Rfc3339Copy())
	service, is := object.(*corev1.Service)
	if !is {
		return []Object{object}
	}
	c.mu.Lock()
	number := c.restored
	c.restored++
	c.mu.Unlock()
	service.Spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	switch policy := service.Spec.IPFamilyPolicy; {
	case policy == nil:
		service.Spec.IPFamilyPolicy = new(corev1.IPFamilyPolicySingleStack)
	case *policy != corev1.IPFamilyPolicySingleStack:
		service.Spec.IPFamilies = append(service.Spec.IPFamilies, corev1.IPv6Protocol)
	}
	var all []Object
	service.Spec.ClusterIPs = nil
	for i, family := range service.Spec.IPFamilies {
		ip := ServiceCIDRs[i].Addr().AsSlice()
		binary.BigEndian.PutUint16(ip[len(ip)-2:], uint16(firstRestored+number))
		addr, _ := netip.AddrFromSlice(ip)
		service.Spec.ClusterIPs = append(service.Spec.ClusterIPs, addr.String())
		all = append(all, c.complete(addressOf(service, addr, family))...)
	}
	service.Spec.ClusterIP = service.Spec.ClusterIPs[0]
	return append(all, service)
}

// addressOf is the object by which an address belongs to a Service (KEP-1880).
func addressOf(service *corev1.Service, addr netip.Addr, family corev1.IPFamily) *networkingv1.IPAddress {
	return &networkingv1.IPAddress{
		ObjectMeta: metav1.ObjectMeta{Name: addr.String(), Labels: map[string]string{
			networkingv1.LabelIPAddressFamily: string(family), networkingv1.LabelManagedBy: "ipallocator.k8s.io",
		}},
		Spec: networkingv1.IPAddressSpec{ParentRef: &networkingv1.ParentReference{
			Resource: "services", Namespace: service.Namespace, Name: service.Name,
		}},
	}
}

// key is where the API server looks for an object, by the tables of its registries.
func key(object Object) (string, error) {
	switch object.(type) {
	case *corev1.Service:
		return "/registry/services/specs/" + object.GetNamespace() + "/" + object.GetName(), nil
	case *discoveryv1.EndpointSlice:
		return "/registry/endpointslices/" + object.GetNamespace() + "/" + object.GetName(), nil
	case *networkingv1.IPAddress:
		return "/registry/ipaddresses/" + object.GetName(), nil
	}
	return "", errors.New("the harness does not know where its kind is kept")
}

// restore creates one object. (Not several in one transaction: they would be of one version, and a watch goes on behind a version.)
func restore(ctx context.Context, client *http.Client, object Object) error {
	err := func() error {
		at, err := key(object)
		if err != nil {
			return err
		}
		kinds, _, err := scheme.Scheme.ObjectKinds(object)
		if err != nil {
			return err
		}
		object.GetObjectKind().SetGroupVersionKind(kinds[0])
		value, err := json.Marshal(object)
		if err != nil {
			return err
		}
		return putNew(ctx, client, []byte(at), value)
	}()
	if err != nil {
		return fmt.Errorf("restore %T %s/%s: %w", object, object.GetNamespace(), object.GetName(), err)
	}
	return nil
}

// putNew puts a value where etcd has none. etcd's JSON has []byte in base 64, and numbers of 64 bits as text (etcd.io, gRPC gateway).
func putNew(ctx context.Context, client *http.Client, key, value []byte) error {
	body, err := json.Marshal(map[string]any{
		"compare": []any{map[string]any{"key": key, "target": "CREATE", "result": "EQUAL", "create_revision": "0"}},
		"success": []any{map[string]any{"request_put": map[string]any{"key": key, "value": value}}},
	})
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, store+"/v3/kv/txn", bytes.NewReader(body))
	if err != nil {
		return err
	}
	answer, err := exchange(client, request)
	if err != nil {
		return err
	}
	var result struct{ Succeeded bool }
	if err := json.Unmarshal([]byte(answer), &result); err != nil {
		return err
	}
	if !result.Succeeded {
		return errors.New("it exists")
	}
	return nil
}
