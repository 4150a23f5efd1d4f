// SPDX-License-Identifier: Apache-2.0

package kube

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

const (
	auditPolicyFile = "audit-policy.yaml"
	auditLogFile    = "audit.log"
)

// auditPolicy notes what changes an object, once it is done, and all that service accounts ask for.
const auditPolicy = `apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- level: Metadata
  verbs: [create, update, patch, delete, deletecollection]
- level: Metadata
  userGroups: ["system:serviceaccounts"]
- level: None
`

// Write is one request, as the API server noted it when it had answered; one that asked to change an object, mostly.
type Write struct {
	User, Agent, Verb   string
	Resource, Namespace string // the resource in the plural and with its subresource: services/status
	Name                string
	Code                int // of the answer, as HTTP has it
	At                  time.Time
}

// String prints a write in one line.
func (w Write) String() string {
	return fmt.Sprintf("%s %s %s %s/%s: %d", w.User, w.Verb, w.Resource, w.Namespace, w.Name, w.Code)
}

// auditFlags writes the policy and has the API server follow it.
func (c *ControlPlane) auditFlags() ([]string, error) {
	policy := filepath.Join(c.dir, auditPolicyFile)
	if err := os.WriteFile(policy, []byte(auditPolicy), 0o600); err != nil {
		return nil, fmt.Errorf("audit policy: %w", err)
	}
	return []string{"--audit-policy-file=" + policy, "--audit-log-path=" + c.auditLog(),
		// An entry is in the file before its answer is on the wire.
		"--audit-log-mode=blocking"}, nil
}

func (c *ControlPlane) auditLog() string { return filepath.Join(c.dir, auditLogFile) }

// Writes are all writes so far by users whose name begins so, in the order of their answers, refused ones too. It needs
// Options.Audit.
func (c *ControlPlane) Writes(user string) ([]Write, error) {
	requests, err := c.Requests(user)
	return slices.DeleteFunc(requests, func(w Write) bool { return w.Verb == "get" || w.Verb == "list" || w.Verb == "watch" }), err
}

// Requests are Writes and, of service accounts, what they read; a watch is noted when it has ended.
func (c *ControlPlane) Requests(user string) (requests []Write, err error) {
	file, err := os.Open(c.auditLog())
	if errors.Is(err, fs.ErrNotExist) {
		return nil, fmt.Errorf("audit log: %w: the control plane was started without Options.Audit", err)
	}
	if err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	defer file.Close()
	lines := bufio.NewScanner(file)
	lines.Buffer(nil, 1<<20)
	for lines.Scan() {
		var entry struct {
			Verb           string
			UserAgent      string
			User           struct{ Username string }
			StageTimestamp time.Time
			ResponseStatus struct{ Code int }
			ObjectRef      struct{ Resource, Subresource, Namespace, Name string }
		}
		if err := json.Unmarshal(lines.Bytes(), &entry); err != nil {
			return nil, fmt.Errorf("audit log: read %q: %w", lines.Text(), err)
		}
		if !strings.HasPrefix(entry.User.Username, user) {
			continue
		}
		object := entry.ObjectRef
		if object.Subresource != "" {
			object.Resource += "/" + object.Subresource
		}
		requests = append(requests, Write{User: entry.User.Username, Agent: entry.UserAgent, Verb: entry.Verb, Resource: object.Resource,
			Namespace: object.Namespace, Name: object.Name, Code: entry.ResponseStatus.Code, At: entry.StageTimestamp})
	}
	if err := lines.Err(); err != nil {
		return nil, fmt.Errorf("audit log: %w", err)
	}
	return requests, nil
}
