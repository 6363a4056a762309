package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"io/fs"
	"strings"

	"github.com/containernetworking/cni/libcni"
	cnitypes "github.com/containernetworking/cni/pkg/types"
	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/version"

	"railhead/internal/cnicall"
	"railhead/internal/kernel/rtnl"
)

// multus is a runtime of networks in front of us, which runs a chain for one sandbox
// by libcni. Of its plugins macvlan is here, and all others are ours.
type multus struct {
	version.PluginDecoder

	w    *world
	s    *box
	cni  *libcni.CNIConfig
	list *libcni.NetworkConfigList
	fail string   // a verb and a plugin
	said []string // verbs and plugins, in order
}

func (w *world) multus(s *box, chain string) *multus {
	w.t.Helper()
	list, err := libcni.NetworkConfFromBytes([]byte(chain))
	if err != nil {
		w.t.Fatal(err)
	}
	m := &multus{w: w, s: s, list: list}
	m.cni = libcni.NewCNIConfigWithCacheDir([]string{"/opt/cni/bin"}, w.t.TempDir(), m)
	return m
}

func (m *multus) call() *libcni.RuntimeConf {
	r := &libcni.RuntimeConf{ContainerID: m.s.id, NetNS: m.s.path, IfName: "net1"}
	for pair := range strings.SplitSeq(m.s.request("").Args, ";") {
		key, value, _ := strings.Cut(pair, "=")
		r.Args = append(r.Args, [2]string{key, value})
	}
	return r
}

func (m *multus) add() (cnitypes.Result, error) {
	return m.cni.AddNetworkList(m.w.t.Context(), m.list, m.call())
}

func (m *multus) check() error {
	return m.cni.CheckNetworkList(m.w.t.Context(), m.list, m.call())
}

func (m *multus) del() error { return m.cni.DelNetworkList(m.w.t.Context(), m.list, m.call()) }

// FindInPath implements [invoke.Exec].
func (m *multus) FindInPath(plugin string, _ []string) (string, error) { return plugin, nil }

// ExecPlugin implements [invoke.Exec].
func (m *multus) ExecPlugin(ctx context.Context, plugin string, stdin []byte, environ []string) ([]byte, error) {
	env := map[string]string{}
	for _, pair := range environ {
		key, value, _ := strings.Cut(pair, "=")
		env[key] = value
	}
	said := env["CNI_COMMAND"] + " " + plugin
	m.said = append(m.said, said)
	switch {
	case said == m.fail:
		return nil, cnitypes.NewError(99, said+" was refused", "")
	case plugin == "macvlan":
		return m.macvlan(ctx, stdin, environ, env)
	}
	answer := m.w.server.Handle(ctx, cnicall.Request{
		Command: env["CNI_COMMAND"], ContainerID: env["CNI_CONTAINERID"], NetNS: env["CNI_NETNS"], IfName: env["CNI_IFNAME"],
		Args: env["CNI_ARGS"], Path: env["CNI_PATH"], Plugin: plugin, Config: stdin,
	})
	if answer.Error != nil {
		return nil, cnitypes.NewError(answer.Error.Code, answer.Error.Msg, "")
	}
	return answer.Output, nil
}

// macvlan does as that of containernetworking does.
func (m *multus) macvlan(ctx context.Context, stdin []byte, environ []string, env map[string]string) ([]byte, error) {
	if env["CNI_COMMAND"] == cnicall.Add {
		return m.addMacvlan(ctx, stdin, environ, env["CNI_IFNAME"])
	}
	_, err := m.ExecPlugin(ctx, pluginIPAM, stdin, environ)
	if env["CNI_COMMAND"] == cnicall.Del && env["CNI_NETNS"] != "" && err == nil {
		err = m.remove(env["CNI_IFNAME"])
	}
	return nil, err
}

func (m *multus) remove(name string) error {
	err := errors.Join(m.s.client.Do(rtnl.LinkDelete{Name: name})...)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// addMacvlan makes the link, asks for its addresses, and sets it up with them.
func (m *multus) addMacvlan(ctx context.Context, stdin []byte, environ []string, name string) ([]byte, error) {
	parent, err := m.w.node.LinkByName(masterOf(string(stdin)))
	if err != nil {
		return nil, err
	}
	m.w.must(m.w.node, rtnl.LinkAdd{Name: name, Kind: "macvlan", Mode: "bridge", Parent: parent.Index, NetNS: int(m.s.file.Fd()), Index: 20})
	given, err := m.ExecPlugin(ctx, pluginIPAM, stdin, environ)
	if err != nil {
		return nil, errors.Join(err, m.remove(name))
	}
	var result types100.Result
	if err := json.Unmarshal(given, &result); err != nil {
		return nil, err
	}
	m.w.must(m.s.client, rtnl.LinkSet{Index: 20, Up: new(true)})
	for _, ip := range result.IPs {
		ip.Interface = new(0)
		prefix, _ := prefixOf(ip.Address)
		m.w.must(m.s.client, rtnl.AddressAdd{Address: rtnl.Address{LinkIndex: 20, Prefix: prefix}})
	}
	m.w.addRoutes(m.s, 20, &result)
	result.Interfaces = []*types100.Interface{{Name: name, Sandbox: m.s.path}}
	return json.Marshal(result)
}
