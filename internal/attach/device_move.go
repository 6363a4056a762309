package attach

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	"railhead/internal/kernel/rtnl"
)

// bringIn moves a device into the pod and sets it there. What was done of it
// when that fails is taken back.
func (w *work) bringIn(i *PlannedInterface) error {
	if l, err := w.pod.LinkByName(i.Name); !errors.Is(err, fs.ErrNotExist) {
		if err != nil {
			return fmt.Errorf("links of the pod: %w", err)
		}
		return fmt.Errorf("name %q is taken in the pod by link %d: want a free one: %w", i.Name, l.Index, fs.ErrExist)
	}
	mark := rtnl.LinkSet{Index: i.ParentIndex, Group: new(DeviceGroup)} // before all else: so it is known what to do with it
	set := rtnl.LinkSet{
		Index: i.ParentIndex, NetNS: w.ns.FD(), Name: i.Name, MTU: i.MTU, Up: new(true),
	}
	if i.MAC != "" && !strings.EqualFold(i.MAC, i.Before.MAC) {
		set.MAC = macOf(i.MAC)
	}
	if i.TxQueueLen != 0 {
		set.TxQueueLen = &i.TxQueueLen
	}
	err := errors.Join(w.a.node.Do(mark)...)
	if err == nil {
		w.a.remember(*i.Before)
		err = w.a.keepWays(*i.Before)
	}
	if err == nil {
		err = errors.Join(w.a.node.Do(set)...)
	}
	if err != nil {
		return errors.Join(err, w.bringBack(i))
	}
	l, err := w.pod.LinkByName(i.Name)
	if err != nil {
		return errors.Join(err, w.bringBack(i))
	}
	w.index[i.Name] = l.Index
	return nil
}

// bringBack gives a device to the node again, from wherever it is.
func (w *work) bringBack(i *PlannedInterface) error {
	links, err := w.pod.Links()
	if err != nil {
		err = fmt.Errorf("links of the pod: %w", err)
	} else {
		_, err = w.moveBack(i, links)
	}
	return errors.Join(err, w.makeFormer(i))
}

// makeFormer makes a device that is back on the node what it was. Of one that is
// not there, or without our mark, there is nothing to be done: it never left, or has
// been made what it was, and what it is now is not ours. A pod may have given it the
// group of our links, which nothing of the node is in.
func (w *work) makeFormer(i *PlannedInterface) error {
	links, err := w.a.node.Links()
	if err != nil {
		return fmt.Errorf("links of the node: %w", err)
	}
	n := slices.IndexFunc(links, func(l rtnl.Link) bool {
		isOurs := l.Group == DeviceGroup || l.Group == Group && i.Before.Group != Group
		return isOurs && i.isDevice(l)
	})
	if n < 0 {
		if slices.ContainsFunc(links, i.isDevice) {
			w.a.forget(*i.Before)
		}
		return nil
	}
	l := links[n]
	made := errors.Join(w.flagsBack(i, l.Name), w.a.restore(*i.Before, l))
	if made == nil { // without its mark it is nobody's, so that goes last
		made = errors.Join(w.a.node.Do(rtnl.LinkSet{Index: l.Index, Group: &i.Before.Group})...)
	}
	if made != nil {
		return fmt.Errorf("device %s: %w", i.Before.Name, made)
	}
	w.a.forget(*i.Before)
	return nil
}

// flagsBack gives a device that is on the node its flags.
func (w *work) flagsBack(i *PlannedInterface, name string) error {
	if i.Promisc == nil && i.AllMulti == nil {
		return nil
	}
	return w.a.try("device", func() error {
		return w.a.home.Do(func() error { return setLinkFlags(name, &i.Before.Promisc, &i.Before.AllMulti) })
	})
}

// moveBack moves a device out of the pod if it is among the links there, with its
// old name if that is free, and returns the number that it had. Its group says
// nothing: the pod may have changed that.
func (w *work) moveBack(i *PlannedInterface, links []rtnl.Link) (index int, err error) {
	n := slices.IndexFunc(links, func(l rtnl.Link) bool { return !w.plan.isMade(l) && i.isDevice(l) })
	if n < 0 {
		return 0, nil
	}
	index = links[n].Index
	back := w.pod.Do(rtnl.LinkSet{Index: index, Up: new(false), Group: new(DeviceGroup)}, rtnl.LinkSet{Index: index, NetNS: w.a.home.FD(), Name: i.Before.Name})
	if errors.Is(errors.Join(back...), fs.ErrExist) {
		// Better under any name than not at all: in the pod's namespace it would
		// be the kernel that gives it one.
		aside := fmt.Sprintf("dev%d", index)
		back = append(back, w.pod.Do(rtnl.LinkSet{Index: index, NetNS: w.a.home.FD(), Name: aside})...)
	}
	return index, errors.Join(back...)
}

// isDevice says whether a link is the device that was moved: hardware by where it
// is, others by name and MAC address. A kernel that takes it back from a
// namespace that ended calls it as the pod did, or dev and a number.
func (i *PlannedInterface) isDevice(l rtnl.Link) bool {
	b := i.Before
	switch {
	case b.Device != "":
		return l.ParentBus == b.Bus && l.ParentDev == b.Device && l.PhysPortName == b.Port
	case b.PermMAC != "":
		return l.PermAddress == b.PermMAC && l.Kind == ""
	}
	name := l.Name == b.Name || l.Name == i.Name || strings.HasPrefix(l.Name, "dev")
	return name && (strings.EqualFold(l.Address, b.MAC) || i.MAC != "" && strings.EqualFold(l.Address, i.MAC))
}

// restore makes a link of the node again what it was.
func (a *Attacher) restore(was Former, l rtnl.Link) error {
	var requests []rtnl.Request
	set := rtnl.LinkSet{Index: l.Index}
	differs := false
	if !strings.EqualFold(l.Address, was.MAC) {
		set.MAC, differs = macOf(was.MAC), true
	}
	if l.MTU != was.MTU {
		set.MTU, differs = was.MTU, true
	}
	if l.Name != was.Name {
		set.Name, differs = was.Name, true
	}
	if l.TxQueueLen != was.TxQueueLen {
		set.TxQueueLen, differs = &was.TxQueueLen, true
	}
	if differs && l.Up {
		requests = append(requests, rtnl.LinkSet{Index: l.Index, Up: new(false)})
	}
	if differs {
		requests = append(requests, set)
	}
	if was.Up && (differs || !l.Up) || !was.Up && l.Up {
		requests = append(requests, rtnl.LinkSet{Index: l.Index, Up: &was.Up})
	}
	return errors.Join(errors.Join(a.node.Do(requests...)...), a.configure(was, l.Index))
}

// configure gives a link the addresses and routes that it had, but for those that
// are there. Routes may have an address for source, which it must not be asked for
// first whether others have it: where nothing is connected, that takes for ever.
func (a *Attacher) configure(was Former, index int) error {
	var requests []rtnl.Request
	for _, address := range was.Addresses {
		address.LinkIndex, address.NoDAD = index, address.Prefix.Addr().Is6()
		requests = append(requests, rtnl.AddressAdd{Address: address})
	}
	for _, route := range was.Routes {
		if was.Up && len(route.NextHops) == 0 {
			route.LinkIndex = index
			requests = append(requests, rtnl.RouteAdd{Route: route})
		}
	}
	err := ignore(a.node.Do(requests...), fs.ErrExist)
	if was.Up {
		err = errors.Join(err, a.rejoin(was, index))
	}
	return err
}
