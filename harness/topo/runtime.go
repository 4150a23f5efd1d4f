// SPDX-License-Identifier: Apache-2.0

package topo

import (
	"errors"
	"fmt"
	"slices"

	"github.com/vishvananda/netlink"
	"golang.org/x/sys/unix"

	"github.com/beep-lb/beep/harness/netns"
)

// AddPod makes a pod that is in no plan, as a CNI does when a kubelet asks, and returns its namespace when its
// addresses work. After an error nothing of it is left.
func (t *Topology) AddPod(pod Pod) (*netns.NS, error) {
	if t.find(pod.Name, false) != nil {
		return nil, fmt.Errorf("pod %s: there is one of that name", pod.Name)
	}
	err := t.addPod(pod)
	if err == nil {
		err = awaitCarriers(func() error {
			return errors.Join(carriers(t.NS(pod.Name), ""), carriers(t.NS(pod.Node), pod.Name))
		})
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("pod %s: %w", pod.Name, err), t.RemovePod(pod.Name, pod.Node))
	}
	return t.NS(pod.Name), nil
}

// RemovePod removes what AddPod made, and with it every server and connection inside.
func (t *Topology) RemovePod(name, node string) error {
	ns := t.find(name, false)
	if ns == nil {
		return nil
	}
	err := ns.Close()
	// The namespace may live on for a while in the kernel; its veth would go only then.
	nl := t.NS(node).Netlink()
	var missing netlink.LinkNotFoundError
	link, linkErr := nl.LinkByName(name)
	if linkErr == nil {
		linkErr = nl.LinkDel(link)
	}
	if linkErr != nil && !errors.As(linkErr, &missing) && !errors.Is(linkErr, unix.ENODEV) { // it may go between the two calls
		err = errors.Join(err, fmt.Errorf("delete device %s of %s: %w", name, node, linkErr))
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	t.members = slices.DeleteFunc(t.members, func(m Member) bool { return m.NS == ns })
	return err
}

// SetCables pulls the cables of a host, all at its LANs' ends, or plugs them in again: the host keeps its addresses and
// routes, and nothing that it sends arrives.
func (t *Topology) SetCables(host string, plugged bool) error {
	for _, port := range t.Host(host).Ports {
		nl := t.find(port.LAN, true).Netlink()
		links, err := nl.LinkList()
		if err != nil {
			return fmt.Errorf("cables of %s: %w", host, err)
		}
		for _, link := range links {
			if link.Attrs().Alias != portAlias(host, port.Device) {
				continue
			}
			set := nl.LinkSetDown
			if plugged {
				set = nl.LinkSetUp
			}
			if err := set(link); err != nil {
				return fmt.Errorf("cable of %s %s: %w", host, port.Device, err)
			}
		}
	}
	return nil
}

// portAlias labels the LAN's end of a cable.
func portAlias(host, device string) string { return host + " " + device }
