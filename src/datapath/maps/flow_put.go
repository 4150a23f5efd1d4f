// SPDX-License-Identifier: Apache-2.0

package maps

import "github.com/beep-lb/beep/src/datapath/bpfobj"

// PutFlow writes one row and not its mirror. In a full table the kernel evicts another.
func (k *Kernel) PutFlow(f Flow) error {
	nat, err := toAddr16(f.Nat.Addr())
	if err != nil {
		return err
	}
	peer, err := toOptional16(f.Peer)
	if err != nil {
		return err
	}
	row := bpfobj.BeepFlow{
		NatAddr: nat, Peer: peer, Uplink: f.Uplink, FrontId: f.FrontID, LastSeen: f.LastSeen, Epoch: f.Epoch,
		Flags: uint32(f.Flags), NatPortBe: toNetwork(f.Nat.Port()), ClientPortBe: toNetwork(f.ClientPort),
		TunnelPortBe: toNetwork(f.TunnelPort), ClientMac: f.ClientMAC, UplinkMac: f.UplinkMAC,
	}
	return put(k.flows[f.Table], f.Table, f.FlowKey, toFlowKey(f.FlowKey), row)
}
