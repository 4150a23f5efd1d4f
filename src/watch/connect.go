// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"fmt"

	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// ErrNoClientCertificate says that a kubeconfig names its user by something else than a certificate.
var ErrNoClientCertificate = errors.New("no X.509 client certificate")

// Connect reads how to reach the API server, from a kubeconfig whose current context has a client certificate, or
// without one from the service account of the pod. It does not connect yet; agent is how requests introduce
// themselves.
func Connect(kubeconfig, agent string) (*rest.Config, error) {
	config, err := readConfig(kubeconfig)
	if err != nil {
		return nil, err
	}
	config.UserAgent = agent
	// JSON stays acceptable: an error may come from a proxy on the way.
	config.ContentType = runtime.ContentTypeProtobuf
	config.AcceptContentTypes = runtime.ContentTypeProtobuf + "," + runtime.ContentTypeJSON
	config.QPS = -1 // the API server's own fairness limits better than a client that does not see its load
	return config, nil
}

func readConfig(kubeconfig string) (*rest.Config, error) {
	if kubeconfig == "" {
		config, err := rest.InClusterConfig()
		if err != nil {
			return nil, fmt.Errorf("no --kubeconfig (KUBECONFIG) is given, and this is no pod with a service account: %w", err)
		}
		return config, nil
	}
	config, err := clientcmd.BuildConfigFromFlags("", kubeconfig)
	if err != nil {
		return nil, fmt.Errorf("--kubeconfig (KUBECONFIG) %q: %w", kubeconfig, err)
	}
	if config.CertFile == "" && len(config.CertData) == 0 {
		return nil, fmt.Errorf("--kubeconfig (KUBECONFIG) %q: %w in the current context: "+
			"set client-certificate and client-key of its user", kubeconfig, ErrNoClientCertificate)
	}
	// Reads the files, and checks that key and certificate belong together.
	if _, err := rest.TLSConfigFor(config); err != nil {
		return nil, fmt.Errorf("--kubeconfig (KUBECONFIG) %q: %w", kubeconfig, err)
	}
	return config, nil
}
