// SPDX-License-Identifier: Apache-2.0

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"sync/atomic"

	"sigs.k8s.io/yaml"

	"github.com/beep-lb/beep/src/compile"
	"github.com/beep-lb/beep/src/model"
	"github.com/beep-lb/beep/src/watch"
)

// statusFile is what a controller without an API server writes beside its manifests: what it would publish, and why
// it leaves something out.
type statusFile struct {
	path      string
	node      string
	how       compile.Publishing
	directory *watch.Directory
	memory    compile.Memory
	// refused are the Services that did not fit in the last run, for whoever asks meanwhile.
	refused atomic.Pointer[[]model.ObjectKey]
}

// status is the content of the file.
type status struct {
	Node string `json:"node"`
	// Fault is what is wrong with the manifests; then the rest is of those from before.
	Fault    string          `json:"fault,omitempty"`
	Services []serviceStatus `json:"services"`
	LeftOut  []string        `json:"leftOut,omitempty"`
}

// serviceStatus is one Service's.
type serviceStatus struct {
	Name    string         `json:"name"`
	Ingress []ingressEntry `json:"ingress"`
}

// ingressEntry is an entry of status.loadBalancer.ingress, in the API's form.
type ingressEntry struct {
	IP       string        `json:"ip,omitempty"`
	Hostname string        `json:"hostname,omitempty"`
	IPMode   string        `json:"ipMode,omitempty"`
	Ports    []ingressPort `json:"ports,omitempty"`
}

type ingressPort struct {
	Port     uint16 `json:"port"`
	Protocol string `json:"protocol"`
	Error    string `json:"error,omitempty"`
}

func newStatusFile(dir, node string, how compile.Publishing, directory *watch.Directory) *statusFile {
	return &statusFile{path: filepath.Join(dir, node+watch.StatusSuffix), node: node, how: how, directory: directory}
}

// write replaces the file if it is not as the outcome says.
func (f *statusFile) write(o outcome) error {
	f.refused.Store(&o.refused)
	leases := f.leases(o.snapshot, &o.refused)
	published, reasons := compile.Publication(o.snapshot, leases, f.how, f.memory)
	f.memory = published.Memory
	content := status{Node: f.node, Services: []serviceStatus{}}
	if fault := f.directory.Fault(); fault != nil {
		content.Fault = fault.Error()
	}
	for _, s := range published.Statuses {
		content.Services = append(content.Services, serviceStatus{s.Service.String(), entries(s.Ingress)})
	}
	seen := map[compile.Reason]bool{}
	for _, reason := range append(reasons, o.reasons...) {
		if !seen[reason] {
			content.LeftOut = append(content.LeftOut, reason.String())
		}
		seen[reason] = true
	}
	return f.replace(content)
}

func entries(ingress []model.Ingress) []ingressEntry {
	list := make([]ingressEntry, 0, len(ingress))
	for _, entry := range ingress {
		e := ingressEntry{IP: entry.IP, Hostname: entry.Hostname, IPMode: entry.IPMode}
		for _, port := range entry.Ports {
			e.Ports = append(e.Ports, ingressPort(port))
		}
		list = append(list, e)
	}
	return list
}

// replace writes the content under another name first, so that nobody reads half of it.
func (f *statusFile) replace(content status) error {
	text, err := yaml.Marshal(content)
	if err != nil {
		return fmt.Errorf("status beside the manifests: %w", err)
	}
	text = append([]byte("# What beep-controller makes of the manifests in this directory. It is not read.\n"), text...)
	if now, err := os.ReadFile(f.path); err == nil && bytes.Equal(now, text) {
		return nil
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return fmt.Errorf("status beside the manifests: %w", err)
	}
	aside := filepath.Join(filepath.Dir(f.path), "."+filepath.Base(f.path))
	if err := os.WriteFile(aside, text, 0o644); err != nil {
		return fmt.Errorf("status beside the manifests: %w", err)
	}
	if err := os.Rename(aside, f.path); err != nil {
		return fmt.Errorf("status beside the manifests: %w", err)
	}
	return nil
}
