package driver

import (
	"fmt"
	"net/netip"
	"path/filepath"

	"railhead/hack/cluster/box"
	"railhead/hack/cluster/component"
	"railhead/hack/cluster/fabric"
	"railhead/hack/cluster/plan"
)

// design makes the machines, all of them off.
func (c *Cluster) design() error {
	control, err := component.ControlPlane(c.plan, c.keys)
	if err != nil {
		return err
	}
	c.add(plan.Fabric, control, c.bootFabric)
	c.machines[plan.Fabric].spec.Tmpfs = []string{component.EtcdData}
	for _, n := range c.plan.Nodes {
		parts, err := component.Node(c.plan, n, c.keys)
		if err != nil {
			return err
		}
		c.add(n.Name, parts, c.bootNode)
		c.machines[n.Name].spec.Disk = nodeDisk
	}
	return nil
}

// nodeDisk is the size of a node's disk in bytes. It takes no more of the
// host's than is written to it.
const nodeDisk = 16 << 30

// Path is what the environment of programs on a machine has for PATH.
const Path = "PATH=" + component.Programs + ":" + component.CNIPlugins + ":/usr/sbin:/usr/bin:/sbin:/bin"

func (c *Cluster) add(name string, parts component.Machine, boot bootFunc) {
	c.machines[name] = &machine{
		spec: box.Spec{
			Name:    name,
			Dir:     c.dir.machine(name),
			Cgroup:  filepath.Join(c.dir.Cgroup(), name),
			Hosts:   c.hosts(),
			Env:     []string{Path},
			Binds:   []box.Bind{{Source: c.programs.Dir(), Target: component.Programs}},
			Files:   parts.Files,
			Sysctls: fabric.Sysctls(c.plan),
		},
		services: parts.Services,
		boot:     boot,
	}
}

// hosts are the machines' names.
func (c *Cluster) hosts() []box.Host {
	var all []box.Host
	name := func(name string, at []netip.Prefix) {
		for _, p := range at {
			all = append(all, box.Host{Addr: p.Addr(), Names: []string{name}})
		}
	}
	name(plan.Fabric, c.plan.Host)
	for _, n := range c.plan.Nodes {
		name(n.Name, n.Host)
	}
	return all
}

// addresses are those of prefixes, as text.
func addresses(prefixes []netip.Prefix) []string {
	var all []string
	for _, p := range prefixes {
		all = append(all, fmt.Sprint(p.Addr()))
	}
	return all
}
