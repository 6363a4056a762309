package probe

import (
	"encoding/binary"
	"net/netip"
	"slices"

	"golang.org/x/net/bpf"
	"golang.org/x/sys/unix"
)

// maxFiltered bounds the addresses that a filter looks for. Before Linux 6.9 a
// socket has 20 KiB for its filter and the one that replaces it, and an address
// takes 24 bytes. With more addresses all claims and probes come through.
const maxFiltered = 300

// filter returns the program that lets through, of all frames, those of ARP and
// neighbour discovery by which somebody claims or probes one of the addresses.
// It compares the last 32 bits of each: what else has them, the decoder leaves
// out. On a busy link the kernel thus wakes nobody for what is not about us.
//
// Frames that are sent from here are left out, and those to others: that is what
// the kernel calls frames of VLANs that end elsewhere.
func filter(addrs []netip.Addr) ([]bpf.RawInstruction, error) {
	arp := slices.Concat([]bpf.Instruction{
		bpf.LoadAbsolute{Off: arpSenderIP, Size: 4},
		bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: 0, SkipTrue: 1},
		bpf.LoadAbsolute{Off: arpTargetIP, Size: 4},
	}, matchLast(addrs, netip.Addr.Is4))
	return bpf.Assemble(slices.Concat(incoming(), protocol(len(arp)), arp, solicitation(), matchLast(addrs, netip.Addr.Is6)))
}

// pass and drop end a program.
func pass() bpf.Instruction { return bpf.RetConstant{Val: 1 << 16} }
func drop() bpf.Instruction { return bpf.RetConstant{Val: 0} }

// incoming drops what is not for us. The kernel gives tagged frames without
// their tags to those who listen to all protocols.
func incoming() []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadExtension{Num: bpf.ExtType},
		bpf.JumpIf{Cond: bpf.JumpLessOrEqual, Val: unix.PACKET_MULTICAST, SkipTrue: 1},
		drop(),
		bpf.LoadExtension{Num: bpf.ExtVLANTagPresent},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 4},
		bpf.LoadExtension{Num: bpf.ExtVLANTag},
		bpf.ALUOpConstant{Op: bpf.ALUOpAnd, Val: 0xfff}, // VLAN 0 is a priority, no VLAN
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
		drop(),
	}
}

// protocol goes on with the next instruction for ARP, and with the one behind
// arp many for IPv6.
func protocol(arp int) []bpf.Instruction {
	return []bpf.Instruction{
		bpf.LoadAbsolute{Off: 2 * macSize, Size: 2},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_ARP, SkipTrue: 3},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.ETH_P_IPV6, SkipTrue: 1},
		drop(),
		bpf.Jump{Skip: uint32(arp)},
	}
}

// solicitation loads the target's last 32 bits of an advertisement, or of a
// solicitation without a source, and drops all else.
func solicitation() []bpf.Instruction {
	code := []bpf.Instruction{
		bpf.LoadAbsolute{Off: ethernetSize + 6, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: unix.IPPROTO_ICMPV6, SkipTrue: 1},
		drop(),
		bpf.LoadAbsolute{Off: icmpOffset, Size: 1},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: ndAdvertise, SkipTrue: 14},
		bpf.JumpIf{Cond: bpf.JumpEqual, Val: ndSolicit, SkipTrue: 1},
		drop(),
	}
	for i := range uint32(4) {
		code = append(code,
			bpf.LoadAbsolute{Off: ipv6Source + 4*i, Size: 4},
			bpf.JumpIf{Cond: bpf.JumpEqual, Val: 0, SkipTrue: 1},
			drop())
	}
	return append(code, bpf.LoadAbsolute{Off: targetOffset + 12, Size: 4})
}

// matchLast passes what was loaded if it is the end of one of the addresses of
// a family.
func matchLast(addrs []netip.Addr, family func(netip.Addr) bool) []bpf.Instruction {
	if len(addrs) > maxFiltered {
		return []bpf.Instruction{pass()}
	}
	var code []bpf.Instruction
	for _, a := range addrs {
		if !family(a) {
			continue
		}
		b := a.As16()
		code = append(code,
			bpf.JumpIf{Cond: bpf.JumpNotEqual, Val: binary.BigEndian.Uint32(b[12:]), SkipTrue: 1},
			pass())
	}
	return append(code, drop())
}
