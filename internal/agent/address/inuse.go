package address

import (
	"errors"
	"fmt"
	"io/fs"
	"net/netip"

	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/node"
)

// inUse returns the addresses in all network namespaces of a node but ours, by
// where they are: "net:[4026532281]". Loopback and link-local ones are left out.
// With an error there may be more, in pods that it names.
//
// Sockets and namespaces are closed before it returns: an open one would keep
// a namespace alive, and a VF in it from coming home. It needs CAP_SYS_ADMIN, and
// CAP_SYS_PTRACE for processes of others.
func inUse(n node.Node) (map[netip.Addr]string, error) {
	found, err := netns.List(n.FS().Path("proc"))
	if err = unseen(n.FS(), err); err != nil {
		err = fmt.Errorf("network namespaces of pods: %w", err)
	}
	all := map[netip.Addr]string{}
	errs := []error{err}
	for _, ns := range found {
		errs = append(errs, addInUse(all, n, ns))
	}
	return all, errors.Join(errs...)
}

// addInUse adds the addresses of a namespace. One that ends meanwhile has none.
func addInUse(all map[netip.Addr]string, n node.Node, found netns.Found) error {
	ns, err := n.Open(found.Path)
	if err != nil {
		if now, again := netns.Stat(found.Path); errors.Is(again, fs.ErrNotExist) || again == nil && now != found.ID {
			return nil
		}
		return fmt.Errorf("addresses of %v (%s): %w", found.ID, found.Path, err)
	}
	defer func() { _ = ns.Close() }()
	links, err := ns.Links()
	if err != nil {
		return fmt.Errorf("addresses of %v (%s): %w", found.ID, found.Path, err)
	}
	defer func() { _ = links.Close() }()
	addresses, err := links.Addresses()
	for _, a := range addresses {
		addr := a.Prefix.Addr().Unmap().WithZone("")
		if !addr.IsLoopback() && !addr.IsLinkLocalUnicast() {
			all[addr] = found.ID.String()
		}
	}
	if err != nil {
		return fmt.Errorf("addresses of %v (%s): %w", found.ID, found.Path, err)
	}
	return nil
}
