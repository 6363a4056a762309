package cniserver

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
	"strings"
	"time"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/containernetworking/cni/pkg/types/create"
	"github.com/containernetworking/cni/pkg/version"

	"railhead/internal/attach/record"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/npwg"
)

// atIPAM is the place in a chain of an IPAM plugin: it is in none.
const atIPAM = -1

// runForeign has the plugins of a network run that are not ours, in order.
func (s *Server) runForeign(ctx context.Context, a *attempt, i int) error {
	began := time.Now()
	n := a.list[i]
	for _, p := range n.parts.After {
		config, err := n.config(p, a.call)
		if err != nil {
			return n.errorf(err)
		}
		if n.result, err = s.exec(ctx, a, i, p, n.chain.Plugins[p].Type, config); err != nil {
			return n.errorf(err)
		}
	}
	if len(n.parts.After) > 0 {
		name := "other_plugins"
		if n.selected.Default {
			name = "default_network"
		}
		a.step(s, name, began)
	}
	return nil
}

// config is what a plugin of a network's chain reads.
func (n *network) config(p int, c call) ([]byte, error) {
	in := npwg.Call{Kubelet: c.conf.RuntimeConfig, DeviceID: n.device}
	if n.device != "" {
		in.DeviceInfoFile = path.Join(npwg.DeviceInfoFolder, npwg.NetworkDeviceFile(c.ContainerID, n.selected.Interface))
	}
	config, err := n.chain.PluginConfig(p, n.selected, in)
	if err != nil || n.result == nil {
		return config, err
	}
	return delegate.WithPrevResult(config, n.result)
}

// runIPAM asks the IPAM plugin of another for addresses of an interface of ours.
func (s *Server) runIPAM(ctx context.Context, a *attempt, i int) error {
	began := time.Now()
	n := a.list[i]
	config, err := n.config(n.parts.Main, a.call)
	if err != nil {
		return n.errorf(err)
	}
	result, err := s.exec(ctx, a, i, atIPAM, n.ipam.Type, config)
	if err != nil {
		return n.errorf(err)
	}
	takeIPAM(&n.made, result)
	a.step(s, "other_plugins", began)
	return nil
}

// exec runs one plugin. What its DEL needs is in the record before.
func (s *Server) exec(ctx context.Context, a *attempt, i, p int, kind string, config []byte) (*types100.Result, error) {
	net := &a.att.Networks[i]
	net.Delegated = append(net.Delegated, record.Delegate{Config: config, Type: kind, IfName: net.Interface, Chain: p})
	if err := s.note(a); err != nil {
		return nil, err
	}
	result, err := s.config.Delegate.Add(ctx, a.call.delegated(kind, net.Interface, config))
	if err != nil {
		if errors.Is(err, delegate.ErrNotThere) {
			net.Delegated = net.Delegated[:len(net.Delegated)-1] // it did not run: there is nothing to undo
		}
		if cause := context.Cause(ctx); cause != nil {
			err = fmt.Errorf("%w (%w)", err, cause)
		}
		return nil, err
	}
	raw, err := json.Marshal(result)
	if err != nil {
		return nil, fmt.Errorf("result of plugin %s: %w", kind, err)
	}
	net.Delegated[len(net.Delegated)-1].Result = raw
	return result, nil
}

// delegated is a call of another's plugin within this one.
func (c call) delegated(kind, ifName string, config []byte) delegate.Call {
	return delegate.Call{
		ContainerID: c.ContainerID, NetNS: c.NetNS, IfName: ifName, Args: c.Args, Path: c.Path, Programs: c.Programs, Type: kind, Config: config,
	}
}

// unasked is the call that nobody made: to take an attachment away.
func unasked(att record.Attachment) call {
	var c call
	c.ContainerID, c.NetNS = att.ContainerID, att.NetNS
	args := []string{
		"IgnoreUnknown=1", "K8S_POD_NAMESPACE=" + att.Namespace, "K8S_POD_NAME=" + att.Name,
		"K8S_POD_INFRA_CONTAINER_ID=" + att.ContainerID, "K8S_POD_UID=" + att.PodUID,
	}
	c.Args = strings.Join(args, ";")
	return c
}

// last is the result of a recorded network's last plugin that answered.
func last(n record.Network) (*types100.Result, error) {
	for _, d := range slices.Backward(n.Delegated) {
		if len(d.Result) > 0 && d.Chain != atIPAM {
			return storedResult(d.Result)
		}
	}
	return nil, nil //nolint:nilnil // none answered
}

// withResult is a configuration for CHECK or DEL: with what the chain answered,
// where its version takes that.
func withResult(config []byte, result *types100.Result) ([]byte, error) {
	if result == nil {
		return config, nil
	}
	spoken, err := (&version.ConfigDecoder{}).Decode(config)
	if err != nil {
		return nil, err
	}
	if takes, err := version.GreaterThanOrEqualTo(spoken, "0.4.0"); err != nil || !takes {
		return config, err
	}
	return delegate.WithPrevResult(config, result)
}

// prevResult is that of a call; nil where there is none that can be read.
func (c call) prevResult() *types100.Result {
	if len(c.conf.PrevResult) == 0 || string(c.conf.PrevResult) == "null" {
		return nil
	}
	old, err := create.Create(c.conf.CNIVersion, c.conf.PrevResult)
	if err != nil {
		return nil
	}
	newest, err := types100.NewResultFromResult(old)
	if err != nil {
		return nil
	}
	return newest
}

// statusCall asks a plugin of the cluster's network.
func (s *Server) statusCall(c call, chain npwg.Chain, i int) (delegate.Call, error) {
	config, err := chain.PluginConfig(i, npwg.Selected{Default: true}, npwg.Call{})
	return delegate.Call{Path: c.Path, Type: chain.Plugins[i].Type, Config: config}, err
}
