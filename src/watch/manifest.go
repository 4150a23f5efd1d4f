// SPDX-License-Identifier: Apache-2.0

package watch

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"

	corev1 "k8s.io/api/core/v1"
	discoveryv1 "k8s.io/api/discovery/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/yaml"
)

// StatusSuffix ends the names of the files that a controller writes beside its manifests; they are not read.
const StatusSuffix = ".status.yaml"

// manifests are the objects of a directory as an API server would hold them, defaults filled in.
type manifests struct {
	services []*corev1.Service
	slices   []*discoveryv1.EndpointSlice
	nodes    []*corev1.Node
	// places tells where each object was read, to name the first of two.
	places map[string]place
}

// place is a document of a file, for a person.
type place struct {
	file     string
	line     int // of the document's first line, from 1
	document int // from 1
}

func (p place) String() string { return fmt.Sprintf("%s:%d (document %d)", p.file, p.line, p.document) }

// readManifests reads every *.yaml and *.yml of a directory in the order of their names. Hidden files and those that
// end in StatusSuffix are left alone. The error joins one line for each document that is wrong; then nothing of the
// directory is to be used.
func readManifests(dir string) (*manifests, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("read manifests: %w", err)
	}
	m := &manifests{places: map[string]place{}}
	var faults []error
	for _, entry := range entries {
		name := entry.Name()
		if strings.HasPrefix(name, ".") || strings.HasSuffix(name, StatusSuffix) ||
			!slices.Contains([]string{".yaml", ".yml"}, filepath.Ext(name)) {
			continue
		}
		data, err := os.ReadFile(filepath.Join(dir, name))
		if err != nil {
			faults = append(faults, fmt.Errorf("read manifests: %w", err))
			continue
		}
		for _, document := range split(name, data) {
			if err := m.add(document.text, document.place); err != nil {
				faults = append(faults, err)
			}
		}
	}
	return m, errors.Join(faults...)
}

// document is one YAML document of a file.
type document struct {
	place
	text []byte
}

// split cuts a file at the lines that start a document (YAML 1.2, section 9.1.4). Documents without content are left
// out, and counted.
func split(file string, data []byte) []document {
	var documents []document
	current := document{place: place{file, 1, 1}}
	line := 0
	for text := range bytes.Lines(data) {
		line++
		if marker, rest := bytes.HasPrefix(text, []byte("---")), text[min(3, len(text)):]; marker && startsBlank(rest) {
			documents = append(documents, current)
			current = document{place: place{file, line, current.document + 1}}
			text = append([]byte("   "), rest...) // what follows the marker belongs to the document
		}
		current.text = append(current.text, text...)
	}
	documents = append(documents, current)
	if len(documents) > 1 && isBlank(documents[0].text) {
		// The marker at the top of a file ends nothing.
		documents = documents[1:]
		for i := range documents {
			documents[i].document--
		}
	}
	return slices.DeleteFunc(documents, func(d document) bool { return isBlank(d.text) })
}

func startsBlank(text []byte) bool {
	return len(text) == 0 || strings.ContainsRune(" \t\r\n", rune(text[0]))
}

// isBlank says that nothing but white space and comments is there.
func isBlank(text []byte) bool {
	for line := range bytes.Lines(text) {
		if trimmed := bytes.TrimSpace(line); len(trimmed) > 0 && trimmed[0] != '#' {
			return false
		}
	}
	return true
}

// add takes one document in: an object, or a List of them.
func (m *manifests) add(text []byte, at place) error {
	var kind metav1.TypeMeta
	if err := yaml.Unmarshal(text, &kind); err != nil {
		return at.fault(err)
	}
	switch kind.APIVersion + " " + kind.Kind {
	case "v1 Service":
		service := &corev1.Service{}
		if err := m.decode(text, at, service, &service.ObjectMeta, kind.Kind); err != nil {
			return err
		}
		defaultService(service)
		m.services = append(m.services, service)
	case "discovery.k8s.io/v1 EndpointSlice":
		slice := &discoveryv1.EndpointSlice{}
		if err := m.decode(text, at, slice, &slice.ObjectMeta, kind.Kind); err != nil {
			return err
		}
		defaultSlice(slice)
		m.slices = append(m.slices, slice)
	case "v1 Node":
		node := &corev1.Node{}
		if err := m.decode(text, at, node, &node.ObjectMeta, kind.Kind); err != nil {
			return err
		}
		m.nodes = append(m.nodes, node)
	case "v1 List":
		return m.addList(text, at)
	default:
		return fmt.Errorf("%s: apiVersion %q, kind %q: "+
			"want a v1 Service, a discovery.k8s.io/v1 EndpointSlice, a v1 Node or a v1 List of them",
			at, kind.APIVersion, kind.Kind)
	}
	return nil
}

// addList takes in what `kubectl get -o yaml` writes.
func (m *manifests) addList(text []byte, at place) error {
	var list struct {
		metav1.TypeMeta `json:",inline"`
		Metadata        metav1.ListMeta        `json:"metadata"`
		Items           []runtime.RawExtension `json:"items"`
	}
	if err := yaml.UnmarshalStrict(text, &list); err != nil {
		return at.fault(err)
	}
	var faults []error
	for i, item := range list.Items {
		if err := m.add(item.Raw, at); err != nil {
			faults = append(faults, fmt.Errorf("item %d of the List: %w", i+1, err))
		}
	}
	return errors.Join(faults...)
}

// decode reads a document into an object, refuses fields that the object does not have, and names it.
func (m *manifests) decode(text []byte, at place, into runtime.Object, meta *metav1.ObjectMeta, kind string) error {
	if err := yaml.UnmarshalStrict(text, into); err != nil {
		return at.fault(fmt.Errorf("%s: %w", kind, err))
	}
	if meta.Name == "" {
		return fmt.Errorf("%s: %s without metadata.name: name it", at, kind)
	}
	name := kind + " " + meta.Name
	if kind != "Node" {
		if meta.Namespace == "" {
			meta.Namespace = metav1.NamespaceDefault
		}
		name = kind + " " + meta.Namespace + "/" + meta.Name
	}
	if first, known := m.places[name]; known {
		return fmt.Errorf("%s: %s is also at %s: remove one of the two", at, name, first)
	}
	m.places[name] = at
	if meta.UID == "" {
		meta.UID = types.UID(name) // ownership of a port needs an order that every node agrees on
	}
	return nil
}

// yamlLine is how the YAML parser begins an error.
var yamlLine = regexp.MustCompile(`\bline (\d+): `)

// fault is a parser's error with the line of the file instead of the document's, where the parser gave one.
func (p place) fault(err error) error {
	text := strings.Replace(err.Error(), "error converting YAML to JSON: ", "", 1)
	if match := yamlLine.FindStringSubmatch(text); match != nil {
		if line, convErr := strconv.Atoi(match[1]); convErr == nil {
			p.line += line - 1
			text = strings.Replace(text, match[0], "", 1)
		}
	}
	return fmt.Errorf("%s: %s", p, strings.Join(strings.Fields(text), " "))
}

// defaultService fills in what an API server would (pkg/apis/core/v1/defaults.go of Kubernetes), as far as beep reads
// it. The cluster's first family is taken to be IPv4, unless the clusterIP says otherwise.
func defaultService(s *corev1.Service) {
	spec := &s.Spec
	for i := range spec.Ports {
		if spec.Ports[i].Protocol == "" {
			spec.Ports[i].Protocol = corev1.ProtocolTCP
		}
	}
	if len(spec.IPFamilies) > 0 {
		return
	}
	spec.IPFamilies = []corev1.IPFamily{corev1.IPv4Protocol}
	if strings.Contains(spec.ClusterIP, ":") {
		spec.IPFamilies[0] = corev1.IPv6Protocol
	}
	if policy := spec.IPFamilyPolicy; policy != nil && *policy != corev1.IPFamilyPolicySingleStack {
		second := corev1.IPv6Protocol
		if spec.IPFamilies[0] == second {
			second = corev1.IPv4Protocol
		}
		spec.IPFamilies = append(spec.IPFamilies, second)
	}
}

// defaultSlice fills in what an API server would (pkg/apis/discovery/v1/defaults.go of Kubernetes).
func defaultSlice(s *discoveryv1.EndpointSlice) {
	for i := range s.Ports {
		port := &s.Ports[i]
		if port.Protocol == nil {
			protocol := corev1.ProtocolTCP
			port.Protocol = &protocol
		}
		if port.Name == nil {
			port.Name = new(string)
		}
	}
}
