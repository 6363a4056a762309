package ipam

import (
	"crypto/sha256"
	"encoding/hex"
	"net/netip"
	"strconv"
	"strings"

	"go4.org/netipx"
	"k8s.io/apimachinery/pkg/types"
)

// PartSize is how many addresses a ledger is about.
const PartSize = 1 << partBits

const (
	partBits = 11
	// nameMost is how long the name of an object may be.
	nameMost = 253
)

// Pool is what granting needs to know of a SpiderIPPool.
type Pool struct {
	Name   string
	UID    types.UID
	Subnet netip.Prefix // masked
	// Addresses is what the pool may give: its ips without excludeIPs and
	// reserved ones. It is never nil.
	Addresses *netipx.IPSet
	// Closed is why the pool gives nothing now, such as "it is disabled"; empty
	// if it gives.
	Closed   string
	Deleting bool
	// Serves says whether a node may have addresses of it; nil: all nodes.
	Serves func(node string) bool
}

// PartOf is the part of a subnet that an address is in: PartSize addresses
// counted from the subnet's first, or the whole of a smaller subnet.
func PartOf(subnet netip.Prefix, addr netip.Addr) netipx.IPRange {
	whole := netipx.RangeOfPrefix(subnet.Masked())
	first := base(subnet).plus(number(addr).minus(base(subnet)).masked(partBits))
	last := first.plus(uint128{lo: PartSize - 1})
	if end := number(whole.To()); end.less(last) || last.less(first) {
		last = end
	}
	return netipx.IPRangeFrom(first.addr(addr.Is4()), last.addr(addr.Is4()))
}

// LedgerName is the name of the ledger of a part: the pool's name for the first
// part, and with a suffix for others. Names too long for an object are cut and
// told apart by a hash.
func LedgerName(pool string, subnet netip.Prefix, part netipx.IPRange) string {
	name := pool
	if index := number(part.From()).minus(base(subnet)).shifted(partBits); index != (uint128{}) {
		name += ".part-" + index.hex()
	}
	if len(name) <= nameMost {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	hash := hex.EncodeToString(sum[:8])
	return strings.TrimRight(name[:nameMost-len(hash)-2], ".-") + ".h" + hash
}

// hex is the number in base 16, without leading zeros.
func (n uint128) hex() string {
	if n.hi == 0 {
		return strconv.FormatUint(n.lo, 16)
	}
	low := strconv.FormatUint(n.lo, 16)
	return strconv.FormatUint(n.hi, 16) + strings.Repeat("0", 16-len(low)) + low
}
