// SPDX-License-Identifier: Apache-2.0

package faultproxy

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// Request is one request to the API server, in the words of its audit log.
type Request struct {
	User, Verb string
	// Resource is in the plural and with its subresource, services/status; empty if the path names none.
	Resource, Namespace, Name string
	At                        time.Time
	Code                      int // of the answer, as HTTP has it; 0 before it
}

// String prints a request in one line.
func (r Request) String() string {
	return fmt.Sprintf("%s %s %s %s %s/%s: %d", r.At.Format(time.StampMilli), r.User, r.Verb, r.Resource, r.Namespace, r.Name, r.Code)
}

// Match is which requests are meant: those that agree in all that it names.
type Match struct{ Verb, Resource, Namespace, Name string }

func (m Match) matches(r Request) bool {
	for _, pair := range [][2]string{{m.Verb, r.Verb}, {m.Resource, r.Resource}, {m.Namespace, r.Namespace}, {m.Name, r.Name}} {
		if pair[0] != "" && pair[0] != pair[1] {
			return false
		}
	}
	return true
}

// read says what a request asks for: /api/VERSION or /apis/GROUP/VERSION, then namespaces/NAMESPACE if there is one,
// RESOURCE, NAME and SUBRESOURCE.
func read(request *http.Request) Request {
	r := Request{User: request.TLS.PeerCertificates[0].Subject.CommonName, At: time.Now()}
	path := strings.Split(strings.Trim(request.URL.Path, "/"), "/")
	switch {
	case path[0] == "api" && len(path) > 2:
		path = path[2:]
	case path[0] == "apis" && len(path) > 3:
		path = path[3:]
	default:
		r.Verb = strings.ToLower(request.Method)
		return r
	}
	if path[0] == "namespaces" && len(path) > 2 {
		r.Namespace, path = path[1], path[2:]
	}
	r.Resource = path[0]
	if len(path) > 1 {
		r.Name = path[1]
	}
	if len(path) > 2 {
		r.Resource += "/" + path[2]
	}
	r.Verb = verb(request, r.Name)
	return r
}

func verb(request *http.Request, name string) string {
	switch watch := request.URL.Query().Get("watch"); {
	case request.Method == http.MethodPost:
		return "create"
	case request.Method == http.MethodPut:
		return "update"
	case request.Method != http.MethodGet:
		return strings.ToLower(request.Method)
	case watch == "true" || watch == "1":
		return "watch"
	case name == "":
		return "list"
	}
	return "get"
}
