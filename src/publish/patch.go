// SPDX-License-Identifier: Apache-2.0

package publish

import (
	"context"
	"encoding/json"
	"fmt"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	typedcorev1 "k8s.io/client-go/kubernetes/typed/core/v1"

	"github.com/beep-lb/beep/src/model"
)

// fieldManager names the writer in an object's managedFields.
const fieldManager = "beep"

// operation is one of a JSON patch (RFC 6902), whose value is a text or a status.
type operation[V string | corev1.LoadBalancerStatus] struct {
	Op    string `json:"op"`
	Path  string `json:"path"`
	Value V      `json:"value"`
}

// statusPatch replaces the whole of status.loadBalancer, and only of the Service in that very version: the API server
// answers 409 to another resourceVersion, since a client may not set it.
func statusPatch(resourceVersion string, ingress []model.Ingress) ([]byte, error) {
	entries := make([]corev1.LoadBalancerIngress, 0, len(ingress))
	for _, entry := range ingress {
		entries = append(entries, ingressOf(entry))
	}
	guard, err := json.Marshal(operation[string]{"replace", "/metadata/resourceVersion", resourceVersion})
	if err != nil {
		return nil, err
	}
	status := corev1.LoadBalancerStatus{Ingress: entries}
	replace, err := json.Marshal(operation[corev1.LoadBalancerStatus]{"add", "/status/loadBalancer", status})
	if err != nil {
		return nil, err
	}
	return json.Marshal([]json.RawMessage{guard, replace})
}

// write patches the status of a Service and returns the version that it has then.
func write(ctx context.Context, services typedcorev1.ServicesGetter, service *model.Service, ingress []model.Ingress) (string, error) {
	patch, err := statusPatch(service.ResourceVersion, ingress)
	if err != nil {
		return "", fmt.Errorf("status of Service %s: %w", service.ObjectKey, err)
	}
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	written, err := services.Services(service.Namespace).Patch(ctx, service.Name, types.JSONPatchType, patch,
		metav1.PatchOptions{FieldManager: fieldManager}, "status")
	if err != nil {
		return "", fmt.Errorf("status of Service %s: %w", service.ObjectKey, err)
	}
	return written.ResourceVersion, nil
}

// ingressOf is an entry in the API's type.
func ingressOf(entry model.Ingress) corev1.LoadBalancerIngress {
	ingress := corev1.LoadBalancerIngress{IP: entry.IP, Hostname: entry.Hostname}
	if entry.IPMode != "" {
		ingress.IPMode = new(corev1.LoadBalancerIPMode(entry.IPMode))
	}
	for _, port := range entry.Ports {
		status := corev1.PortStatus{Port: int32(port.Port), Protocol: corev1.Protocol(port.Protocol)}
		if port.Error != "" {
			status.Error = new(port.Error)
		}
		ingress.Ports = append(ingress.Ports, status)
	}
	return ingress
}
