// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"k8s.io/client-go/tools/clientcmd"
	clientcmdapi "k8s.io/client-go/tools/clientcmd/api"
)

func TestKubeconfigsThatAreRefused(t *testing.T) {
	write := func(change func(*clientcmdapi.Config)) string {
		config := clientcmdapi.NewConfig()
		config.Clusters["c"] = &clientcmdapi.Cluster{Server: "https://192.0.2.1:6443"}
		config.AuthInfos["u"] = &clientcmdapi.AuthInfo{Token: "secret"}
		config.Contexts["x"] = &clientcmdapi.Context{Cluster: "c", AuthInfo: "u"}
		config.CurrentContext = "x"
		change(config)
		path := filepath.Join(t.TempDir(), "kubeconfig")
		if err := clientcmd.WriteToFile(*config, path); err != nil {
			t.Fatal(err)
		}
		return path
	}
	garbage := filepath.Join(t.TempDir(), "garbage")
	if err := os.WriteFile(garbage, []byte("{{{"), 0o600); err != nil {
		t.Fatal(err)
	}
	for _, tt := range []struct{ name, path, want string }{
		{"missing", "/nowhere/kubeconfig", "no such file or directory"},
		{"garbage", garbage, "yaml: line 1"},
		{"with a token alone", write(func(*clientcmdapi.Config) {}), ErrNoClientCertificate.Error()},
		{"without a context", write(func(c *clientcmdapi.Config) { c.CurrentContext = "" }), "invalid configuration"},
		{"with a certificate file that is not there", write(func(c *clientcmdapi.Config) {
			c.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificate: "/nowhere/cert", ClientKey: "/nowhere/key"}
		}), "/nowhere/cert"},
		{"with a certificate that is none", write(func(c *clientcmdapi.Config) {
			c.AuthInfos["u"] = &clientcmdapi.AuthInfo{ClientCertificateData: []byte("x"), ClientKeyData: []byte("y")}
		}), "PEM"},
		{"none, and no pod", "", "no --kubeconfig (KUBECONFIG) is given"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			_, _, err := Connect(tt.path, "test")
			if err == nil || !strings.Contains(err.Error(), tt.want) || tt.path != "" && !strings.Contains(err.Error(), tt.path) {
				t.Errorf("%v\nwant it to name %q and say %q", err, tt.path, tt.want)
			}
		})
	}
	if _, _, err := Connect(write(func(*clientcmdapi.Config) {}), "test"); !errors.Is(err, ErrNoClientCertificate) {
		t.Errorf("%v", err)
	}
}
