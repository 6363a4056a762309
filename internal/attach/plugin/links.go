package plugin

import (
	"cmp"
	"errors"
	"fmt"
	"strings"

	"railhead/internal/attach"
)

// onMaster is what the plugins that stand on a netdev have in common.
type onMaster struct {
	asked

	Master          string `json:"master"`
	MTU             int    `json:"mtu"`
	LinkInContainer bool   `json:"linkInContainer"`
}

// link is on the master. What the ifacer in front makes is the master then: a
// master by another name would silently be another netdev.
func (b *builder) link(kind attach.Kind, c onMaster) error {
	link := attach.Link{Kind: kind, MTU: c.MTU, InContainer: c.LinkInContainer, Parent: attach.Parent{Name: c.Master}}
	err := checkMTU(c.MTU)
	switch {
	case c.Master == "":
		err = errors.Join(err, errors.New(`field master: is missing: want the name of a netdev, such as "ens6f0np0"`))
	case b.ifacer == nil:
		err = errors.Join(err, checkNetdev("master", c.Master))
	case c.LinkInContainer:
		err = errors.Join(err, badField("linkInContainer", true, "false, as the master is made on the node by plugin ifacer in front of it"))
	case c.Master != b.ifacer.Name:
		err = errors.Join(err, badField("master", c.Master, fmt.Sprintf("%q, which plugin ifacer in front of it makes", b.ifacer.Name)))
	}
	if b.ifacer != nil {
		link.Parent = *b.ifacer
	}
	b.made.Link = link
	return err
}

// setMAC notes what is asked of the main plugin.
func (b *builder) setMAC(a asked, configured string) error {
	var err error
	b.main, err = a.mac(configured)
	return err
}

func (b *builder) macvlan(config []byte) error {
	errKnown := known(config, "master", "mode", "mtu", "mac", "linkInContainer", "bcqueuelen")
	c, err := decode[struct {
		onMaster

		Mode       string `json:"mode"`
		MAC        string `json:"mac"`
		BCQueueLen int    `json:"bcqueuelen"`
	}](config)
	if err != nil {
		return err
	}
	errLink := b.link(attach.Macvlan, c.onMaster)
	b.made.Link.Mode, b.made.SharesMAC = c.Mode, c.Mode == "passthru"
	if c.BCQueueLen != 0 {
		err = badField("bcqueuelen", c.BCQueueLen, "none or 0: this release leaves the queue's length to the kernel")
	}
	return errors.Join(errKnown, errLink, err,
		oneOf("mode", c.Mode, "bridge", "private", "vepa", "passthru"), b.setMAC(c.asked, c.MAC))
}

func (b *builder) ipvlan(config []byte) error {
	errKnown := known(config, "master", "mode", "mtu", "linkInContainer")
	c, err := decode[struct {
		onMaster

		Mode string `json:"mode"`
	}](config)
	if err != nil {
		return err
	}
	b.made.SharesMAC = true
	errLink := b.link(attach.IPVLAN, c.onMaster)
	b.made.Link.Mode = c.Mode
	return errors.Join(errKnown, errLink, oneOf("mode", c.Mode, "l2", "l3", "l3s"), b.setMAC(c.asked, ""))
}

func (b *builder) vlan(config []byte) error {
	const most = 4094
	errKnown := known(config, "master", "vlanMode", "vlanId", "mtu", "linkInContainer")
	c, err := decode[struct {
		onMaster

		VLANMode string `json:"vlanMode"`
		VLANID   *int   `json:"vlanId"`
	}](config)
	if err != nil {
		return err
	}
	errLink := b.link(attach.VLAN, c.onMaster)
	switch {
	case c.VLANMode == "auto":
		err = badField("vlanMode", c.VLANMode, "manual with a vlanId: this release has no VLAN that comes with the address")
	case c.VLANMode != "" && c.VLANMode != "manual":
		err = badField("vlanMode", c.VLANMode, "manual")
	case c.VLANID == nil:
		err = fmt.Errorf("field vlanId: is missing: want 1 to %d", most)
	case *c.VLANID < 1 || *c.VLANID > most: // 0 would be none
		err = badField("vlanId", *c.VLANID, fmt.Sprintf("1 to %d", most))
	default:
		b.made.Link.VLANID = *c.VLANID
	}
	return errors.Join(errKnown, errLink, err, b.setMAC(c.asked, ""))
}

// hostDevice moves a netdev of the node. That which the kubelet allocates is named
// as the runtime's deviceID.
func (b *builder) hostDevice(config []byte) error {
	errKnown := known(config, "device", "hwaddr", "kernelpath", "pciBusID")
	c, err := decode[struct {
		asked

		Device     string `json:"device"`
		HWAddr     string `json:"hwaddr"`
		KernelPath string `json:"kernelpath"`
		PCIBusID   string `json:"pciBusID"`
	}](config)
	if err != nil {
		return err
	}
	var (
		d     attach.Device
		named []string
		errs  = []error{errKnown, b.setMAC(c.asked, "")}
	)
	if b.ifacer != nil {
		errs = append(errs, errors.New("plugin ifacer stands in front of it: want none, as it has no master"))
	}
	if c.Device != "" {
		d.Name, named = c.Device, append(named, "device")
		errs = append(errs, checkNetdev("device", c.Device))
	}
	if c.HWAddr != "" {
		d.MAC, err = parseMAC("hwaddr", c.HWAddr)
		named, errs = append(named, "hwaddr"), append(errs, err)
	}
	if c.KernelPath != "" {
		d.KernelPath, err = kernelPath(c.KernelPath)
		named, errs = append(named, "kernelpath"), append(errs, err)
	}
	if c.PCIBusID != "" {
		d.PCIAddress, err = pciAddress(c.PCIBusID)
		named, errs = append(named, "pciBusID"), append(errs, err)
	}
	if len(named) != 1 {
		errs = append(errs, fmt.Errorf("names its device by %s: want one of device, hwaddr, kernelpath and pciBusID, or a device that the kubelet allocates", cmp.Or(strings.Join(named, " and "), "nothing")))
	}
	b.made.Link = attach.Link{Kind: attach.HostDevice, Device: d}
	return errors.Join(errs...)
}
