// SPDX-License-Identifier: Apache-2.0

package cluster

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
)

// Grace is the grace of the pods below in seconds: longer than all need who must hear that a pod leaves, on a machine
// that is busy, and no longer than a spec likes to wait.
const Grace = 3

// HTTPPort, StreamOn and DatagramOn are the container ports of the pods below.
const (
	HTTPPort   = 8080
	StreamOn   = 8081
	DatagramOn = 8082
)

// Pod is a pod of an app that serves HTTP, TCP streams and datagrams, and has a readiness probe, so that it is in an
// EndpointSlice for a second before it is ready; node is where it is bound, or empty for the scheduler to choose.
func Pod(name, app, node string) *corev1.Pod {
	return &corev1.Pod{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: map[string]string{"app": app}},
		Spec: corev1.PodSpec{
			NodeName: node, TerminationGracePeriodSeconds: new(int64(Grace)),
			Containers: []corev1.Container{{
				Name: "server", Image: "a-namespace", Ports: []corev1.ContainerPort{
					{Name: "http", ContainerPort: HTTPPort},
					{Name: StreamPort, ContainerPort: StreamOn},
					{Name: "datagram", ContainerPort: DatagramOn, Protocol: corev1.ProtocolUDP},
				},
				ReadinessProbe: &corev1.Probe{
					ProbeHandler:        corev1.ProbeHandler{HTTPGet: &corev1.HTTPGetAction{Port: intstr.FromInt32(HTTPPort)}},
					InitialDelaySeconds: 1,
				},
			}},
		},
	}
}

// Deployment is so many pods of an app. A rolling update of it never has fewer.
func Deployment(app string, replicas int32) *appsv1.Deployment {
	pod := Pod("", app, "")
	return &appsv1.Deployment{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: appsv1.DeploymentSpec{
			Replicas: &replicas, Selector: &metav1.LabelSelector{MatchLabels: pod.Labels},
			Template: corev1.PodTemplateSpec{ObjectMeta: metav1.ObjectMeta{Labels: pod.Labels}, Spec: pod.Spec},
			Strategy: appsv1.DeploymentStrategy{RollingUpdate: &appsv1.RollingUpdateDeployment{
				MaxUnavailable: new(intstr.FromInt32(0)), MaxSurge: new(intstr.FromInt32(1)),
			}},
		},
	}
}

// Service is a dual-stack LoadBalancer of an app's HTTP servers on a port.
func Service(app string, port int32) *corev1.Service {
	return &corev1.Service{
		ObjectMeta: metav1.ObjectMeta{Name: app},
		Spec: corev1.ServiceSpec{
			Type: corev1.ServiceTypeLoadBalancer, Selector: map[string]string{"app": app},
			IPFamilyPolicy: new(corev1.IPFamilyPolicyRequireDualStack),
			Ports:          []corev1.ServicePort{{Name: "http", Port: port, TargetPort: intstr.FromInt32(HTTPPort)}},
		},
	}
}
