package rtnl

import (
	"encoding/binary"
	"fmt"

	"golang.org/x/sys/unix"
)

// PFC is a link's priority flow control (IEEE 802.1Qbb). Whether the bits and
// counters are those of the wire or of one function is for the driver to say;
// mlx5 answers for PFs only.
type PFC struct {
	Enabled     uint8     `json:"enabled"`     // bit N: priority N is paused in place of being dropped
	Requests    [8]uint64 `json:"requests"`    // pause frames sent, by priority
	Indications [8]uint64 `json:"indications"` // pause frames received, by priority
}

// Numbers of include/uapi/linux/dcbnl.h that this package speaks. They are
// exported for those who play the kernel.
const (
	DCBCmdIEEEGet  = 21 // DCB_CMD_IEEE_GET
	DCBAttrIfname  = 1  // DCB_ATTR_IFNAME
	DCBAttrIEEE    = 13 // DCB_ATTR_IEEE
	DCBAttrIEEEPFC = 2  // DCB_ATTR_IEEE_PFC, within DCBAttrIEEE

	SizeofDCBMsg  = 4   // struct dcbmsg: family, command, padding
	SizeofIEEEPFC = 136 // struct ieee_pfc
)

// PFC returns the priority flow control of the link with a name, which is what
// the kernel wants here (RTM_GETDCB, DCB_CMD_IEEE_GET). The driver may ask its
// firmware. The error is [ErrNotSupported] where the driver or the kernel has
// no such thing.
func (c *Client) PFC(link string) (PFC, error) {
	object := fmt.Sprintf("DCB of link %q", link)
	m, err := c.get(object, unix.RTM_GETDCB, pfcRequest(link))
	if err != nil {
		return PFC{}, err
	}
	p, err := parsePFC(m.Data)
	if err != nil {
		return PFC{}, fmt.Errorf("%s: %w", object, err)
	}
	return p, nil
}

func pfcRequest(link string) []byte {
	b := []byte{unix.AF_UNSPEC, DCBCmdIEEEGet, 0, 0}
	return appendAttribute(b, DCBAttrIfname, append([]byte(link), 0))
}

// parsePFC decodes an answer, which has no PFC where the driver has none.
func parsePFC(b []byte) (PFC, error) {
	if err := header(b, SizeofDCBMsg); err != nil {
		return PFC{}, err
	}
	if b[1] != DCBCmdIEEEGet {
		return PFC{}, fmt.Errorf("answer to the command %d, want %d", b[1], DCBCmdIEEEGet)
	}
	var p PFC
	found := false
	a := attributes{rest: b[SizeofDCBMsg:]}
	for a.next() {
		if a.typ != DCBAttrIEEE {
			continue
		}
		ieee := attributes{rest: a.data}
		for ieee.next() {
			if ieee.typ == DCBAttrIEEEPFC {
				p, found = decodePFC(ieee.fixed(SizeofIEEEPFC)), true
			}
		}
		a.fail(ieee.err)
	}
	switch {
	case a.err != nil:
		return PFC{}, a.err
	case !found:
		return PFC{}, fmt.Errorf("no priority flow control: %w", ErrNotSupported)
	}
	return p, nil
}

// decodePFC takes a struct ieee_pfc: capability, enabled, MACsec bypass, delay
// and, at bytes 8 and 72, the counters.
func decodePFC(b []byte) PFC {
	p := PFC{Enabled: b[1]}
	for i := range p.Requests {
		p.Requests[i] = binary.NativeEndian.Uint64(b[8+8*i:])
		p.Indications[i] = binary.NativeEndian.Uint64(b[72+8*i:])
	}
	return p
}
