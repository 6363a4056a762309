package rdmanl

import (
	"encoding/binary"
	"errors"
	"net/netip"
	"strconv"

	"github.com/mdlayher/netlink"
)

// Owner is who made an object. PIDs are those of the PID namespace the reader
// is in, may be of a thread, and are 0 when that namespace does not see the
// task, when it has ended, or when the kernel made the object.
type Owner struct {
	PID        int    `json:"pid,omitempty"`
	KernelName string `json:"kernelName,omitempty"` // the kernel's user, "ib_core"; empty for objects of processes
}

// ResourceCount is how many objects of a kind a device has.
type ResourceCount struct {
	Name  string `json:"name"` // "pd", "cq", "qp", "cm_id", "mr", "ctx", "srq"
	Count uint64 `json:"count"`
}

// Context is a user context: an open uverbs file.
type Context struct {
	Number uint32 `json:"number"`
	Owner
}

// PD is a protection domain.
type PD struct {
	Number           uint32  `json:"number"`
	Context          *uint32 `json:"context,omitempty"` // number; nil for PDs of the kernel
	Users            uint64  `json:"users"`             // objects within it
	LocalDMALKey     *uint32 `json:"localDMALKey,omitempty"`
	UnsafeGlobalRKey *uint32 `json:"unsafeGlobalRKey,omitempty"`
	Owner
}

// MR is a memory region.
type MR struct {
	Number uint32  `json:"number"`
	PD     *uint32 `json:"pd,omitempty"` // number; nil for MRs of the kernel
	Length uint64  `json:"length"`       // bytes
	LKey   *uint32 `json:"lkey,omitempty"`
	RKey   *uint32 `json:"rkey,omitempty"`
	IOVA   *uint64 `json:"iova,omitempty"`
	Owner
}

// CQ is a completion queue.
type CQ struct {
	Number             uint32  `json:"number"`
	Context            *uint32 `json:"context,omitempty"`     // number; nil for CQs of the kernel
	Entries            uint32  `json:"entries"`               // its size
	Users              uint64  `json:"users"`                 // queues that complete to it
	PollContext        string  `json:"pollContext,omitempty"` // "DIRECT", "SOFTIRQ", "WORKQUEUE", "UNBOUND_WORKQUEUE"; empty for CQs of processes
	AdaptiveModeration *bool   `json:"adaptiveModeration,omitempty"`
	Owner
}

// CMID is an identifier of the connection manager, what rdma_create_id makes.
type CMID struct {
	Number      uint32         `json:"number"`
	Port        int            `json:"port,omitempty"` // 0 before it is bound to one
	QPN         *uint32        `json:"qpn,omitempty"`
	QPType      string         `json:"qpType,omitempty"`
	PortSpace   string         `json:"portSpace"` // "TCP", "UDP", "IPoIB", "IB"
	State       string         `json:"state"`     // "LISTEN", "CONNECT", …
	Source      netip.AddrPort `json:"source,omitzero"`
	Destination netip.AddrPort `json:"destination,omitzero"` // addresses are invalid where not set, or not IP
	Owner
}

// QP is a queue pair.
type QP struct {
	Number        uint32  `json:"number"`
	Port          int     `json:"port,omitempty"` // 0 before it is bound to one
	PD            *uint32 `json:"pd,omitempty"`   // number; nil for QPs of the kernel
	RemoteQPN     *uint32 `json:"remoteQPN,omitempty"`
	ReceivePSN    *uint32 `json:"receivePSN,omitempty"`
	SendPSN       *uint32 `json:"sendPSN,omitempty"`
	Type          string  `json:"type"` // "RC", "UD", …
	Subtype       string  `json:"subtype,omitempty"`
	State         string  `json:"state"`                   // "RTS", "ERR", …
	PathMigration string  `json:"pathMigration,omitempty"` // "MIGRATED", "REARM", "ARMED"; of connected QPs
	Owner
}

// SRQ is a shared receive queue.
type SRQ struct {
	Number uint32     `json:"number"`
	PD     *uint32    `json:"pd,omitempty"`
	CQ     *uint32    `json:"cq,omitempty"`
	Type   string     `json:"type"` // "BASIC", "XRC", "TM"
	QPNs   []QPNRange `json:"qpns,omitempty"`
	Owner
}

// QPNRange is QPs with consecutive numbers.
type QPNRange struct {
	First uint32 `json:"first"`
	Last  uint32 `json:"last"`
}

// Resources returns how many objects a device has (RDMA_NLDEV_CMD_RES_GET). It
// is one cheap message.
func (c *Client) Resources(device uint32) ([]ResourceCount, error) {
	r := request{command: CmdResGet, device: &device}
	b, err := c.get(r)
	if err != nil {
		return nil, err
	}
	counts, err := decodeTable(b, AttrResSummary, AttrResSummaryEntry, (*ResourceCount).decode)
	if err != nil {
		return nil, newError(r, err)
	}
	return counts, nil
}

// The methods below dump the objects of a device. The kernel hides keys from
// readers without CAP_NET_ADMIN. Driver attributes are not decoded. Objects
// read before an error come with it. A dump does not lock: objects come and go
// while it is read.

// Contexts returns the user contexts of a device (RDMA_NLDEV_CMD_RES_CTX_GET,
// Linux 5.13).
func (c *Client) Contexts(device uint32) ([]Context, error) {
	return entries(c, request{command: CmdResCtxGet, device: &device}, AttrResCtx, AttrResCtxEntry, (*Context).decode)
}

// PDs returns the protection domains of a device (RDMA_NLDEV_CMD_RES_PD_GET).
func (c *Client) PDs(device uint32) ([]PD, error) {
	return entries(c, request{command: CmdResPDGet, device: &device}, AttrResPD, AttrResPDEntry, (*PD).decode)
}

// MRs returns the memory regions of a device (RDMA_NLDEV_CMD_RES_MR_GET).
func (c *Client) MRs(device uint32) ([]MR, error) {
	return entries(c, request{command: CmdResMRGet, device: &device}, AttrResMR, AttrResMREntry, (*MR).decode)
}

// CQs returns the completion queues of a device (RDMA_NLDEV_CMD_RES_CQ_GET).
func (c *Client) CQs(device uint32) ([]CQ, error) {
	return entries(c, request{command: CmdResCQGet, device: &device}, AttrResCQ, AttrResCQEntry, (*CQ).decode)
}

// CMIDs returns the connection identifiers of a device
// (RDMA_NLDEV_CMD_RES_CM_ID_GET).
func (c *Client) CMIDs(device uint32) ([]CMID, error) {
	return entries(c, request{command: CmdResCMIDGet, device: &device}, AttrResCMID, AttrResCMIDEntry, (*CMID).decode)
}

// QPs returns the queue pairs of a device (RDMA_NLDEV_CMD_RES_QP_GET). The
// driver queries each, on mlx5 with a firmware command a QP.
func (c *Client) QPs(device uint32) ([]QP, error) { //nolint:revive // queue pairs, not queries per second
	return entries(c, request{command: CmdResQPGet, device: &device}, AttrResQP, AttrResQPEntry, (*QP).decode)
}

// SRQs returns the shared receive queues of a device
// (RDMA_NLDEV_CMD_RES_SRQ_GET, Linux 5.13).
func (c *Client) SRQs(device uint32) ([]SRQ, error) {
	return entries(c, request{command: CmdResSRQGet, device: &device}, AttrResSRQ, AttrResSRQEntry, (*SRQ).decode)
}

// entries dumps a table, which comes in as many messages as it takes.
func entries[T any](c *Client, r request, table, entry uint16, decode func(*T, *netlink.AttributeDecoder)) ([]T, error) {
	replies, err := c.dump(r)
	errs := []error{err}
	var all []T
	for _, m := range replies {
		part, err := decodeTable(m.Data, table, entry, decode)
		if err != nil {
			errs = append(errs, newError(r, err))
		}
		all = append(all, part...)
	}
	return all, errors.Join(errs...)
}

// decodeTable decodes the entries of a table within a message. Entries before
// one that cannot be decoded come with the error. Entries without attributes
// are objects that the kernel does not show.
func decodeTable[T any](b []byte, table, entry uint16, decode func(*T, *netlink.AttributeDecoder)) ([]T, error) {
	var all []T
	err := attributes(b, func(ad *netlink.AttributeDecoder) {
		if ad.Type() != table {
			return
		}
		nested(ad, func(rows *netlink.AttributeDecoder) {
			if rows.Type() != entry {
				return
			}
			if row, ok := decodeEntry(rows, decode); ok {
				all = append(all, row)
			}
		})
	})
	return all, err
}

func decodeEntry[T any](ad *netlink.AttributeDecoder, decode func(*T, *netlink.AttributeDecoder)) (row T, ok bool) {
	ad.Nested(func(nad *netlink.AttributeDecoder) error {
		visitAll(nad, func(nad *netlink.AttributeDecoder) {
			decode(&row, nad)
			ok = true
		})
		ok = ok && nad.Err() == nil
		return nil
	})
	return row, ok
}

func (o *Owner) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrResPID:
		o.PID = int(ad.Uint32())
	case AttrResKernName:
		o.KernelName = ad.String()
	}
}

func (r *ResourceCount) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrResSummaryEntryName:
		r.Name = ad.String()
	case AttrResSummaryEntryCurr:
		r.Count = ad.Uint64()
	}
}

func (c *Context) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrResCtxN:
		c.Number = ad.Uint32()
	default:
		c.Owner.decode(ad)
	}
}

func (p *PD) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrResPDN:
		p.Number = ad.Uint32()
	case AttrResCtxN:
		p.Context = new(ad.Uint32())
	case AttrResUseCount:
		p.Users = ad.Uint64()
	case AttrResLocalDMALKey:
		p.LocalDMALKey = new(ad.Uint32())
	case AttrResUnsafeGlobalRKey:
		p.UnsafeGlobalRKey = new(ad.Uint32())
	default:
		p.Owner.decode(ad)
	}
}

func (m *MR) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrResMRN:
		m.Number = ad.Uint32()
	case AttrResPDN:
		m.PD = new(ad.Uint32())
	case AttrResMRLen:
		m.Length = ad.Uint64()
	case AttrResLKey:
		m.LKey = new(ad.Uint32())
	case AttrResRKey:
		m.RKey = new(ad.Uint32())
	case AttrResIOVA:
		m.IOVA = new(ad.Uint64())
	default:
		m.Owner.decode(ad)
	}
}

func (c *CQ) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrResCQN:
		c.Number = ad.Uint32()
	case AttrResCtxN:
		c.Context = new(ad.Uint32())
	case AttrResCQE:
		c.Entries = ad.Uint32()
	case AttrResUseCount:
		c.Users = ad.Uint64()
	case AttrResPollCtx:
		c.PollContext = named(pollContexts, uint32(ad.Uint8()))
	case AttrDevDIM:
		c.AdaptiveModeration = new(ad.Uint8() != 0)
	default:
		c.Owner.decode(ad)
	}
}

func (c *CMID) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrResCMIDN:
		c.Number = ad.Uint32()
	case AttrPortIndex:
		c.Port = int(ad.Uint32())
	case AttrResLQPN:
		c.QPN = new(ad.Uint32())
	case AttrResType:
		c.QPType = named(qpTypes, uint32(ad.Uint8()))
	case AttrResPS:
		c.PortSpace = named(portSpaces, ad.Uint32())
	case AttrResState:
		c.State = named(cmStates, uint32(ad.Uint8()))
	case AttrResSrcAddr:
		ad.Do(func(b []byte) (err error) { c.Source, err = decodeSockaddr(b); return err })
	case AttrResDstAddr:
		ad.Do(func(b []byte) (err error) { c.Destination, err = decodeSockaddr(b); return err })
	default:
		c.Owner.decode(ad)
	}
}

func (q *QP) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrResLQPN:
		q.Number = ad.Uint32()
	case AttrPortIndex:
		q.Port = int(ad.Uint32())
	case AttrResPDN:
		q.PD = new(ad.Uint32())
	case AttrResRQPN:
		q.RemoteQPN = new(ad.Uint32())
	case AttrResRQPSN:
		q.ReceivePSN = new(ad.Uint32())
	case AttrResSQPSN:
		q.SendPSN = new(ad.Uint32())
	case AttrResType:
		q.Type = named(qpTypes, uint32(ad.Uint8()))
	case AttrResSubtype:
		q.Subtype = ad.String()
	case AttrResState:
		q.State = named(qpStates, uint32(ad.Uint8()))
	case AttrResPathMigState:
		q.PathMigration = named(pathMigrationStates, uint32(ad.Uint8()))
	default:
		q.Owner.decode(ad)
	}
}

func (s *SRQ) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrResSRQN:
		s.Number = ad.Uint32()
	case AttrResPDN:
		s.PD = new(ad.Uint32())
	case AttrResCQN:
		s.CQ = new(ad.Uint32())
	case AttrResType:
		s.Type = named(srqTypes, uint32(ad.Uint8()))
	case AttrResQP:
		nested(ad, func(table *netlink.AttributeDecoder) {
			if row, ok := decodeEntry(table, (*QPNRange).decode); ok {
				s.QPNs = append(s.QPNs, row)
			}
		})
	default:
		s.Owner.decode(ad)
	}
}

func (r *QPNRange) decode(ad *netlink.AttributeDecoder) {
	switch ad.Type() {
	case AttrResLQPN:
		r.First = ad.Uint32()
		r.Last = r.First
	case AttrMinRange:
		r.First = ad.Uint32()
	case AttrMaxRange:
		r.Last = ad.Uint32()
	}
}

// Families of struct sockaddr, as Linux numbers them.
const (
	afInet  = 2
	afInet6 = 10
)

// decodeSockaddr decodes a struct sockaddr_in or sockaddr_in6 at the begin of b.
// Other families, such as AF_IB, give an invalid address.
func decodeSockaddr(b []byte) (netip.AddrPort, error) {
	if len(b) < 28 { // the kernel sends a whole sockaddr_storage
		return netip.AddrPort{}, errShortAddr
	}
	port := binary.BigEndian.Uint16(b[2:])
	switch binary.NativeEndian.Uint16(b) {
	case afInet:
		return netip.AddrPortFrom(netip.AddrFrom4([4]byte(b[4:8])), port), nil
	case afInet6:
		addr := netip.AddrFrom16([16]byte(b[8:24]))
		if scope := binary.NativeEndian.Uint32(b[24:]); scope != 0 && addr.IsLinkLocalUnicast() {
			addr = addr.WithZone(strconv.FormatUint(uint64(scope), 10))
		}
		return netip.AddrPortFrom(addr, port), nil
	}
	return netip.AddrPort{}, nil
}
