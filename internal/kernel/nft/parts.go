package nft

import (
	"encoding/binary"
	"errors"
	"fmt"

	"github.com/google/nftables"
	"github.com/google/nftables/expr"
	"golang.org/x/sys/unix"
)

// part is something that a table is made of.
type part struct {
	needs string // of the kernel
	add   func(*nftables.Conn, *nftables.Table)
}

// parts returns what the table is made of: the chains, and after them the rules
// in which each needs more than those before it.
//
//	chain prerouting { type filter hook prerouting priority mangle
//		iifname dev ct state new ct mark set ct mark and not mask or mark
//		iifname dev ct mark and mask == mark meta mark set meta mark and not mask or mark }
//	chain output { type route hook output priority mangle
//		ct mark and mask == mark meta mark set meta mark and not mask or mark }
func parts(dev string, mark, mask uint32) []part {
	from := []expr.Any{
		&expr.Meta{Key: expr.MetaKeyIIFNAME, Register: 1},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: name(dev)},
	}
	isNew := []expr.Any{
		&expr.Ct{Key: expr.CtKeySTATE, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: word(expr.CtStateBitNEW), Xor: word(0)},
		&expr.Cmp{Op: expr.CmpOpNeq, Register: 1, Data: word(0)},
	}
	save := []expr.Any{
		&expr.Ct{Key: expr.CtKeyMARK, Register: 1},
		change(mark, mask),
		&expr.Ct{Key: expr.CtKeyMARK, Register: 1, SourceRegister: true},
	}
	restore := []expr.Any{
		&expr.Ct{Key: expr.CtKeyMARK, Register: 1},
		&expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: word(mask), Xor: word(0)},
		&expr.Cmp{Op: expr.CmpOpEq, Register: 1, Data: word(mark)},
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1},
		change(mark, mask),
		&expr.Meta{Key: expr.MetaKeyMARK, Register: 1, SourceRegister: true},
	}
	const prerouting, output = "prerouting", "output"
	return []part{
		{"nf_tables with CONFIG_NF_TABLES_INET", func(*nftables.Conn, *nftables.Table) {}},
		{"nf_tables with chains of type filter", chain(prerouting, nftables.ChainTypeFilter, nftables.ChainHookPrerouting)},
		{"nf_tables with chains of type route for inet (Linux 5.2)", chain(output, nftables.ChainTypeRoute, nftables.ChainHookOutput)},
		{"nft_ct, nf_conntrack with CONFIG_NF_CONNTRACK_MARK", rule(prerouting, from, isNew, save)},
		{"nft_ct", rule(prerouting, from, restore)},
		{"nft_ct", rule(output, restore)},
	}
}

// chain adds a chain that lets everything pass.
func chain(name string, kind nftables.ChainType, hook *nftables.ChainHook) func(*nftables.Conn, *nftables.Table) {
	return func(conn *nftables.Conn, t *nftables.Table) {
		accept := nftables.ChainPolicyAccept
		conn.AddChain(&nftables.Chain{
			Name: name, Table: t, Type: kind, Hooknum: hook, Priority: nftables.ChainPriorityMangle, Policy: &accept,
		})
	}
}

// rule adds a rule of expressions.
func rule(chain string, groups ...[]expr.Any) func(*nftables.Conn, *nftables.Table) {
	var all []expr.Any
	for _, g := range groups {
		all = append(all, g...)
	}
	return func(conn *nftables.Conn, t *nftables.Table) {
		conn.AddRule(&nftables.Rule{Table: t, Chain: &nftables.Chain{Name: chain, Table: t}, Exprs: all})
	}
}

// change sets the bits of mask to those of mark.
func change(mark, mask uint32) expr.Any {
	return &expr.Bitwise{SourceRegister: 1, DestRegister: 1, Len: 4, Mask: word(^mask), Xor: word(mark)}
}

// word is a number as registers have it.
func word(v uint32) []byte { return binary.NativeEndian.AppendUint32(nil, v) }

// name is an interface's as registers have it.
func name(dev string) []byte {
	b := make([]byte, unix.IFNAMSIZ)
	copy(b, dev)
	return b
}

// isMissing reports whether an error may say that the kernel does not have
// something: expressions and types of chains that it does not find do not
// exist, and families and kinds of messages are not supported.
func isMissing(err error) bool {
	for _, errno := range []error{unix.ENOENT, unix.EOPNOTSUPP, unix.EAFNOSUPPORT, unix.EPROTONOSUPPORT} {
		if errors.Is(err, errno) {
			return true
		}
	}
	return false
}

// missing finds out which part of a table it was that the kernel refused with
// err: it tries one more at a time, in tables that do not stay.
func missing(parts []part, err error, try func([]part) error) error {
	for i := range parts {
		if refusal := try(parts[:i+1]); isMissing(refusal) {
			return fmt.Errorf("%w: want %s: %w", ErrNotSupported, parts[i].needs, refusal)
		}
	}
	return err
}

// trial ends the name of a table that only lives within a transaction.
const trial = "-trial"
