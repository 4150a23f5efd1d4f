// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"errors"
	"fmt"
	"math/big"
	"net"
	"net/netip"
	"os"
	"path/filepath"
	"time"
)

// validity is that of all certificates: longer than any test, and none is renewed.
const validity = 24 * time.Hour

// The files of the control plane's directory that flags of several programs name.
const (
	authorityFile = "ca.crt"
	accountFile   = "service-account.key"
)

// apiServerName is the common name of the API server's certificates.
const apiServerName = "kube-apiserver"

// authority is the certificate authority of one cluster. Kubernetes reads a client's user from the common name of
// its certificate and its groups from the organizations.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

// pair is a certificate with its key, in PEM.
type pair struct{ cert, key []byte }

// paths are the files of a pair.
type paths struct{ cert, key string }

func newAuthority() (*authority, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	template, err := certificate(pkix.Name{CommonName: "beep test authority"})
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	template.IsCA, template.BasicConstraintsValid = true, true
	template.KeyUsage = x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	cert, err := x509.ParseCertificate(der)
	if err != nil {
		return nil, fmt.Errorf("certificate authority: %w", err)
	}
	return &authority{cert: cert, key: key, pem: encode("CERTIFICATE", der)}, nil
}

// client makes a certificate for a user in groups.
func (a *authority) client(user string, groups []string) (pair, error) {
	template, err := certificate(pkix.Name{CommonName: user, Organization: groups})
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", user, err)
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth}
	made, err := a.sign(template)
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", user, err)
	}
	return made, nil
}

// ServingCertificate is a certificate that every client of this cluster takes for the API server's at these addresses:
// for what is to stand between and read along.
func (c *ControlPlane) ServingCertificate(addrs ...netip.Addr) (tls.Certificate, error) {
	made, err := c.ca.server(apiServerName, addrs)
	if err != nil {
		return tls.Certificate{}, err
	}
	return tls.X509KeyPair(made.cert, made.key)
}

// server makes a certificate of a server at these addresses.
func (a *authority) server(name string, addrs []netip.Addr) (pair, error) {
	template, err := certificate(pkix.Name{CommonName: name})
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth}
	for _, addr := range addrs {
		template.IPAddresses = append(template.IPAddresses, net.IP(addr.AsSlice()))
	}
	made, err := a.sign(template)
	if err != nil {
		return pair{}, fmt.Errorf("certificate of %s: %w", name, err)
	}
	return made, nil
}

// serverPair writes the API server's certificate, the key and the authority's certificate into a directory.
func (a *authority) serverPair(dir string, addrs ...netip.Addr) (paths, error) {
	made, err := a.server(apiServerName, addrs)
	if err != nil {
		return paths{}, err
	}
	files := paths{cert: filepath.Join(dir, "apiserver.crt"), key: filepath.Join(dir, "apiserver.key")}
	return files, errors.Join(
		os.WriteFile(files.cert, made.cert, 0o600),
		os.WriteFile(files.key, made.key, 0o600),
		os.WriteFile(filepath.Join(dir, authorityFile), a.pem, 0o600),
	)
}

// accountKey writes the key that signs service accounts' tokens into a directory.
func (a *authority) accountKey(dir string) (path string, err error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return "", fmt.Errorf("key of service accounts: %w", err)
	}
	der, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return "", fmt.Errorf("key of service accounts: %w", err)
	}
	path = filepath.Join(dir, accountFile)
	return path, os.WriteFile(path, encode("EC PRIVATE KEY", der), 0o600)
}

func (a *authority) sign(template *x509.Certificate) (pair, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return pair{}, err
	}
	der, err := x509.CreateCertificate(rand.Reader, template, a.cert, key.Public(), a.key)
	if err != nil {
		return pair{}, err
	}
	secret, err := x509.MarshalECPrivateKey(key)
	if err != nil {
		return pair{}, err
	}
	return pair{cert: encode("CERTIFICATE", der), key: encode("EC PRIVATE KEY", secret)}, nil
}

// certificate is what all certificates have in common. It is valid from an hour ago, should a clock be set back.
func certificate(subject pkix.Name) (*x509.Certificate, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	now := time.Now()
	return &x509.Certificate{
		SerialNumber: serial, Subject: subject, KeyUsage: x509.KeyUsageDigitalSignature,
		NotBefore: now.Add(-time.Hour), NotAfter: now.Add(validity),
	}, nil
}

func encode(kind string, der []byte) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der})
}

func (c *ControlPlane) caFile() string { return filepath.Join(c.dir, authorityFile) }
