// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strings"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Namespace is where beep lives, unless it is told otherwise.
const Namespace = "beep-system"

// ErrNoClientCertificate says that a kubeconfig names its user by something else than a certificate.
var ErrNoClientCertificate = errors.New("no X.509 client certificate")

// Connect reads how to reach the API server, from a kubeconfig whose current context has a client certificate, or
// without one from the service account of the pod; and the namespace that it names. It does not connect yet; agent is
// how requests introduce themselves.
func Connect(kubeconfig, agent string) (config *rest.Config, namespace string, err error) {
	if kubeconfig == "" {
		config, namespace, err = podConfig()
	} else {
		config, namespace, err = fileConfig(kubeconfig)
	}
	if err != nil {
		return nil, "", err
	}
	config.UserAgent = agent
	// JSON stays acceptable: an error may come from a proxy on the way.
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS = -1 // the API server's own fairness limits better than a client that does not see its load
	return config, namespace, nil
}

// podNamespace is where a kubelet puts the name of a pod's namespace.
const podNamespace = "/var/run/secrets/kubernetes.io/serviceaccount/namespace"

func podConfig() (*rest.Config, string, error) {
	const without = "no --kubeconfig (KUBECONFIG) is given, and this is no pod with a service account: %w"
	config, err := rest.InClusterConfig()
	if err != nil {
		return nil, "", fmt.Errorf(without, err)
	}
	namespace, err := os.ReadFile(podNamespace)
	if err != nil {
		return nil, "", fmt.Errorf(without, err)
	}
	return config, strings.TrimSpace(string(namespace)), nil
}

func fileConfig(path string) (*rest.Config, string, error) {
	fault := func(err error) error { return fmt.Errorf("--kubeconfig (KUBECONFIG) %q: %w", path, err) }
	file, err := clientcmd.LoadFromFile(path)
	if err != nil {
		return nil, "", fault(err)
	}
	if err := clientcmd.ResolveLocalPaths(file); err != nil {
		return nil, "", fault(err)
	}
	config, err := clientcmd.NewDefaultClientConfig(*file, &clientcmd.ConfigOverrides{}).ClientConfig()
	if err != nil {
		return nil, "", fault(err)
	}
	if config.CertFile == "" && len(config.CertData) == 0 {
		return nil, "", fault(
			fmt.Errorf("%w in the current context: set client-certificate and client-key of its user", ErrNoClientCertificate))
	}
	// Reads the files, and checks that key and certificate belong together.
	if _, err := rest.TLSConfigFor(config); err != nil {
		return nil, "", fault(err)
	}
	return config, cmp.Or(file.Contexts[file.CurrentContext].Namespace, Namespace), nil
}
