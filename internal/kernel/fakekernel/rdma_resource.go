package fakekernel

import (
	"encoding/binary"
	"net/netip"
	"slices"
	"strconv"

	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rdmanl"
)

// resources counts the objects of a device.
func (k *Kernel) resources(q question) (a answer) {
	d, h := k.device(q), k.hca(q)
	if d == nil {
		return answer{errno: unix.EINVAL}
	}
	counts := []rdmanl.ResourceCount{ // in the order of enum rdma_restrack_type
		{Name: "pd", Count: uint64(len(h.PDs))},
		{Name: "cq", Count: uint64(len(h.CQs))},
		{Name: "qp", Count: uint64(len(h.QPs))},
		{Name: "cm_id", Count: uint64(len(h.CMIDs))},
		{Name: "mr", Count: uint64(len(h.MRs))},
		{Name: "ctx", Count: uint64(len(h.Contexts))},
		{Name: "srq", Count: uint64(len(h.SRQs))},
	}
	a.add(q.object, encode(func(ae *netlink.AttributeEncoder) {
		putHandle(ae, d, 0)
		nest(ae, rdmanl.AttrResSummary, func(ae *netlink.AttributeEncoder) {
			for _, c := range counts {
				nest(ae, rdmanl.AttrResSummaryEntry, func(ae *netlink.AttributeEncoder) {
					ae.String(rdmanl.AttrResSummaryEntryName, c.Name)
					ae.Uint64(rdmanl.AttrResSummaryEntryCurr, c.Count)
				})
			}
		})
	}))
	return a
}

// objectsOfMessage is how many objects a message has: an attribute that holds
// them is shorter than 64 KiB.
const objectsOfMessage = 50

// objects dumps objects of a device.
func objects[T any](of func(*HCA) []T, table, entry uint16, put func(*netlink.AttributeEncoder, T)) func(*Kernel, question) answer {
	return func(k *Kernel, q question) (a answer) {
		d := k.device(q)
		if d == nil {
			return answer{errno: unix.EINVAL}
		}
		for part := range slices.Chunk(of(k.hca(q)), objectsOfMessage) {
			a.add(q.object, encode(func(ae *netlink.AttributeEncoder) {
				putHandle(ae, d, 0)
				nest(ae, table, func(ae *netlink.AttributeEncoder) {
					for _, object := range part {
						nest(ae, entry, func(ae *netlink.AttributeEncoder) { put(ae, object) })
					}
				})
			}))
		}
		return a
	}
}

// putOwner encodes who made an object. The kernel does not name a process that
// the reader does not see.
func putOwner(ae *netlink.AttributeEncoder, o rdmanl.Owner) {
	switch {
	case o.KernelName != "":
		ae.String(rdmanl.AttrResKernName, o.KernelName)
	case o.PID != 0:
		ae.Uint32(rdmanl.AttrResPID, uint32(o.PID))
	}
}

func putPort(ae *netlink.AttributeEncoder, port int) {
	if port != 0 {
		ae.Uint32(rdmanl.AttrPortIndex, uint32(port))
	}
}

func putContext(ae *netlink.AttributeEncoder, c rdmanl.Context) {
	ae.Uint32(rdmanl.AttrResCtxN, c.Number)
	putOwner(ae, c.Owner)
}

func putPD(ae *netlink.AttributeEncoder, p rdmanl.PD) {
	putOptional32(ae, rdmanl.AttrResLocalDMALKey, p.LocalDMALKey)
	putOptional32(ae, rdmanl.AttrResUnsafeGlobalRKey, p.UnsafeGlobalRKey)
	ae.Uint64(rdmanl.AttrResUseCount, p.Users)
	ae.Uint32(rdmanl.AttrResPDN, p.Number)
	putOptional32(ae, rdmanl.AttrResCtxN, p.Context)
	putOwner(ae, p.Owner)
}

func putMR(ae *netlink.AttributeEncoder, m rdmanl.MR) {
	putOptional32(ae, rdmanl.AttrResRKey, m.RKey)
	putOptional32(ae, rdmanl.AttrResLKey, m.LKey)
	putOptional64(ae, rdmanl.AttrResIOVA, m.IOVA)
	ae.Uint64(rdmanl.AttrResMRLen, m.Length)
	ae.Uint32(rdmanl.AttrResMRN, m.Number)
	putOptional32(ae, rdmanl.AttrResPDN, m.PD)
	putOwner(ae, m.Owner)
}

func putCQ(ae *netlink.AttributeEncoder, c rdmanl.CQ) {
	ae.Uint32(rdmanl.AttrResCQE, c.Entries)
	ae.Uint64(rdmanl.AttrResUseCount, c.Users)
	putEnum(ae, rdmanl.AttrResPollCtx, pollContexts, c.PollContext)
	putBool(ae, rdmanl.AttrDevDIM, c.AdaptiveModeration)
	ae.Uint32(rdmanl.AttrResCQN, c.Number)
	putOptional32(ae, rdmanl.AttrResCtxN, c.Context)
	putOwner(ae, c.Owner)
}

func putCMID(ae *netlink.AttributeEncoder, c rdmanl.CMID) {
	putPort(ae, c.Port)
	putOptional32(ae, rdmanl.AttrResLQPN, c.QPN)
	putEnum(ae, rdmanl.AttrResType, qpTypes, c.QPType)
	ae.Uint32(rdmanl.AttrResPS, numberOf(portSpaces, c.PortSpace))
	ae.Uint8(rdmanl.AttrResState, uint8(numberOf(cmStates, c.State)))
	putSockaddr(ae, rdmanl.AttrResSrcAddr, c.Source)
	putSockaddr(ae, rdmanl.AttrResDstAddr, c.Destination)
	ae.Uint32(rdmanl.AttrResCMIDN, c.Number)
	putOwner(ae, c.Owner)
}

func putQP(ae *netlink.AttributeEncoder, q rdmanl.QP) {
	putPort(ae, q.Port)
	ae.Uint32(rdmanl.AttrResLQPN, q.Number)
	putOptional32(ae, rdmanl.AttrResRQPN, q.RemoteQPN)
	putOptional32(ae, rdmanl.AttrResRQPSN, q.ReceivePSN)
	putOptional32(ae, rdmanl.AttrResSQPSN, q.SendPSN)
	putEnum(ae, rdmanl.AttrResPathMigState, pathMigrationStates, q.PathMigration)
	putEnum(ae, rdmanl.AttrResType, qpTypes, q.Type)
	putString(ae, rdmanl.AttrResSubtype, q.Subtype)
	putEnum(ae, rdmanl.AttrResState, qpStates, q.State)
	putOptional32(ae, rdmanl.AttrResPDN, q.PD)
	putOwner(ae, q.Owner)
}

func putSRQ(ae *netlink.AttributeEncoder, s rdmanl.SRQ) {
	ae.Uint32(rdmanl.AttrResSRQN, s.Number)
	putEnum(ae, rdmanl.AttrResType, srqTypes, s.Type)
	putOptional32(ae, rdmanl.AttrResPDN, s.PD)
	putOptional32(ae, rdmanl.AttrResCQN, s.CQ)
	nest(ae, rdmanl.AttrResQP, func(ae *netlink.AttributeEncoder) {
		for _, r := range s.QPNs {
			nest(ae, rdmanl.AttrResQPEntry, func(ae *netlink.AttributeEncoder) {
				if r.First == r.Last {
					ae.Uint32(rdmanl.AttrResLQPN, r.First)
					return
				}
				ae.Uint32(rdmanl.AttrMinRange, r.First)
				ae.Uint32(rdmanl.AttrMaxRange, r.Last)
			})
		}
	})
	putOwner(ae, s.Owner)
}

// putSockaddr encodes an address as a struct sockaddr_storage, nothing where
// it is not set.
func putSockaddr(ae *netlink.AttributeEncoder, typ uint16, a netip.AddrPort) {
	if !a.IsValid() {
		return
	}
	b := make([]byte, 128)
	binary.NativeEndian.PutUint16(b, uint16(familyOf(a.Addr())))
	binary.BigEndian.PutUint16(b[2:], a.Port())
	if a.Addr().Is4() {
		copy(b[4:], a.Addr().AsSlice())
	} else {
		copy(b[8:], a.Addr().AsSlice())
		scope, err := strconv.ParseUint(a.Addr().Zone(), 10, 32)
		if err == nil {
			putUint32(b[24:], uint32(scope))
		}
	}
	ae.Bytes(typ, b)
}
