// SPDX-License-Identifier: Apache-2.0

package node

import (
	"context"
	"crypto/ed25519"
	"crypto/rand"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"sync"

	"golang.org/x/crypto/ssh"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/transcript"
)

// errConnection is the error of a command whose connection was lost, so that nobody knows how it ended.
var errConnection = errors.New("the connection to the node was lost")

// keys are those of a node's SSH server and of its only user.
type keys struct {
	host   ssh.Signer
	user   ssh.Signer
	secret []byte // of the server, as sshd reads it
}

func newKeys() (keys, error) {
	user, _, err := newKey()
	if err != nil {
		return keys{}, err
	}
	host, secret, err := newKey()
	return keys{host: host, user: user, secret: secret}, err
}

func newKey() (ssh.Signer, []byte, error) {
	_, secret, err := ed25519.GenerateKey(rand.Reader)
	if err != nil {
		return nil, nil, fmt.Errorf("make an SSH key: %w", err)
	}
	block, err := ssh.MarshalPrivateKey(secret, "")
	if err != nil {
		return nil, nil, fmt.Errorf("make an SSH key: %w", err)
	}
	signer, err := ssh.NewSignerFromSigner(secret)
	if err != nil {
		return nil, nil, fmt.Errorf("make an SSH key: %w", err)
	}
	return signer, pem.EncodeToMemory(block), nil
}

// addTo adds the server's key, and who may come, to a node's files.
func (k keys) addTo(files map[string]file) {
	files["etc/ssh/ssh_host_ed25519_key"] = file{text: string(k.secret), mode: 0o600}
	files["root/.ssh/authorized_keys"] = file{text: string(ssh.MarshalAuthorizedKey(k.user.PublicKey())), mode: 0o600}
}

// shell runs commands on a node, all by one connection as long as that holds.
type shell struct {
	from *netns.NS
	at   netip.AddrPort
	keys keys

	mu     sync.Mutex
	client *ssh.Client
}

func newShell(from *netns.NS, at netip.Addr, k keys) *shell {
	return &shell{from: from, at: netip.AddrPortFrom(at, 22), keys: k}
}

// dial returns the connection, which it opens if there is none.
func (s *shell) dial(ctx context.Context) (*ssh.Client, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client != nil {
		return s.client, nil
	}
	conn, err := s.from.DialContext(ctx, "tcp", s.at.String())
	if err != nil {
		return nil, err
	}
	stop := context.AfterFunc(ctx, func() { _ = conn.Close() })
	defer stop()
	over, channels, requests, err := ssh.NewClientConn(conn, s.at.String(), &ssh.ClientConfig{
		User: "root", Auth: []ssh.AuthMethod{ssh.PublicKeys(s.keys.user)},
		HostKeyCallback: ssh.FixedHostKey(s.keys.host.PublicKey()), HostKeyAlgorithms: []string{ssh.KeyAlgoED25519},
	})
	if err != nil {
		return nil, errors.Join(err, ctx.Err(), conn.Close())
	}
	s.client = ssh.NewClient(over, channels, requests)
	return s.client, nil
}

// drop forgets a connection that failed.
func (s *shell) drop(client *ssh.Client) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.client == client {
		s.client = nil
	}
	// It has failed already: the reason is known.
	_ = client.Close()
}

func (s *shell) close() {
	s.mu.Lock()
	client := s.client
	s.mu.Unlock()
	if client != nil {
		s.drop(client)
	}
}

// run runs a command to its end or that of ctx.
func (s *shell) run(ctx context.Context, command string, stdin io.Reader) (string, error) {
	client, err := s.dial(ctx)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errConnection, err)
	}
	// Whatever hangs, ends with the connection. Others who use it now make a new one.
	stop := context.AfterFunc(ctx, func() { s.drop(client) })
	defer stop()
	session, err := client.NewSession()
	if err != nil {
		s.drop(client)
		return "", fmt.Errorf("%w: %w", errConnection, errors.Join(err, ctx.Err()))
	}
	defer session.Close()
	var out transcript.Transcript
	session.Stdin, session.Stdout, session.Stderr = stdin, &out, &out
	err = session.Run(command)
	var missing *ssh.ExitMissingError
	var exit *ssh.ExitError
	if err != nil && !errors.As(err, &exit) || errors.As(err, &missing) {
		s.drop(client)
		err = fmt.Errorf("%w: %w", errConnection, errors.Join(err, ctx.Err()))
	}
	return out.String(), err
}
