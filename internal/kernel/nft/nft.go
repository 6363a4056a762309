// Package nft marks connections, by one table of nftables in a network
// namespace: those that begin at an interface, and all that is sent of them
// later, so that a rule can lead answers back to where the questions came from.
package nft

import (
	"errors"
	"fmt"
	"os"
	"time"

	"github.com/google/nftables"
	"github.com/mdlayher/netlink"
	"golang.org/x/sys/unix"
)

// ErrNotSupported says that the kernel lacks something that marks need.
var ErrNotSupported = errors.New("not supported by the kernel")

// answerWithin bounds the wait for the kernel, which answers at once or, to a
// batch that it does not understand, fewer times than it was asked.
const answerWithin = 10 * time.Second

// Mark makes a table of family inet, which marks connections that begin at the
// interface dev and all packets of connections that are marked, received by dev
// or sent from here. Of connections and packets, it changes the bits of mask to
// those of mark. A table of the name that is there already is replaced, at once.
//
// netnsFD refers to the network namespace, 0 for that of the calling thread. An
// error that is ErrNotSupported names the kernel module or option that is
// missing; then, as after any other error, what was there before still is.
//
// It needs CAP_NET_ADMIN in that namespace, and CAP_SYS_ADMIN to enter another.
func Mark(netnsFD int, table, dev string, mark, mask uint32) error {
	switch {
	case table == "" || len(table) > maxTable:
		return fmt.Errorf("nftables: table %q: want a name of 1 to %d bytes", table, maxTable)
	case dev == "" || len(dev) >= unix.IFNAMSIZ:
		return fmt.Errorf("nftables: table %s: interface %q: want a name of 1 to %d bytes", table, dev, unix.IFNAMSIZ-1)
	case mark == 0 || mark&^mask != 0:
		return fmt.Errorf("nftables: table %s: mark %#x with mask %#x: want a mark within its mask, not 0", table, mark, mask)
	}
	if err := ask(netnsFD); err != nil {
		return fmt.Errorf("nftables: table inet %s: %w", table, err)
	}
	parts := parts(dev, mark, mask)
	err := commit(netnsFD, table, parts, false)
	if isMissing(err) {
		err = missing(parts, err, func(parts []part) error { return commit(netnsFD, table+trial, parts, true) })
	}
	if err != nil {
		return fmt.Errorf("nftables: table inet %s: %w", table, err)
	}
	return nil
}

// maxTable is the longest name of a table that leaves room for trial.
const maxTable = unix.NFT_NAME_MAXLEN - 1 - len(trial)

// Unmark removes a table of family inet and all that is in it. That there is
// none, or that the kernel can have none, is no error. For privileges and
// netnsFD see [Mark].
func Unmark(netnsFD int, table string) error {
	err := ask(netnsFD)
	if errors.Is(err, ErrNotSupported) {
		return nil
	}
	if err == nil {
		err = commit(netnsFD, table, nil, true)
	}
	if err != nil {
		return fmt.Errorf("nftables: remove table inet %s: %w", table, err)
	}
	return nil
}

// ask asks for the tables. A kernel without nftables refuses that; to what
// changes something it would give fewer answers than are waited for.
func ask(netnsFD int) error {
	conn, err := dial(netnsFD)
	if err != nil {
		return err
	}
	_, err = conn.ListTablesOfFamily(nftables.TableFamilyINet)
	if errors.Is(err, unix.EINVAL) || isMissing(err) {
		return fmt.Errorf("%w: want module nf_tables: %w", ErrNotSupported, err)
	}
	return err
}

// dial opens no socket yet: each request has its own.
func dial(netnsFD int) (*nftables.Conn, error) {
	return nftables.New(nftables.WithNetNSFd(netnsFD), nftables.WithSockOptions(func(c *netlink.Conn) error {
		return c.SetDeadline(time.Now().Add(answerWithin))
	}))
}

// commit puts a table in the place of one of its name, or of none, all in one
// transaction. With remove, the table is gone at its end.
func commit(netnsFD int, table string, parts []part, remove bool) error {
	conn, err := dial(netnsFD)
	if err != nil {
		return err
	}
	t := &nftables.Table{Name: table, Family: nftables.TableFamilyINet}
	conn.AddTable(t) // so that there is one to remove
	conn.DelTable(t)
	if len(parts) > 0 {
		conn.AddTable(t)
	}
	for _, p := range parts {
		p.add(conn, t)
	}
	if remove && len(parts) > 0 {
		conn.DelTable(t)
	}
	err = conn.Flush()
	if errors.Is(err, os.ErrDeadlineExceeded) {
		return fmt.Errorf("the kernel did not answer all requests within %v: %w", answerWithin, err)
	}
	return err
}
