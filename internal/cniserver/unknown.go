package cniserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"slices"

	"k8s.io/apimachinery/pkg/types"

	"railhead/internal/cnicall"
	"railhead/internal/cniserver/delegate"
	"railhead/internal/ipam/holder"
	"railhead/internal/kernel/rtnl"
	"railhead/internal/npwg"
)

// delUnknown is DEL of a sandbox without a record: it was attached before we were
// installed, or is gone already. The cluster's own network may have it, and links
// of our group have nobody else.
func (s *Server) delUnknown(ctx context.Context, c call) error {
	var errs []error
	if c.NetNS != "" {
		switch _, err := s.statNetNS(c.NetNS); {
		case errors.Is(err, fs.ErrNotExist):
			c.NetNS = ""
		case err != nil:
			return coded(cnicall.CodeTryAgain, fmt.Errorf("sandbox %s: whether network namespace %s is still there cannot be told: %w", c.ContainerID, c.NetNS, err))
		default:
			errs = append(errs, s.sweep(c.NetNS))
		}
	}
	errs = append(errs, s.delCluster(ctx, c))
	if err := errors.Join(errs...); err != nil {
		return err
	}
	s.releaseUnknown(ctx, c)
	return nil
}

// delCluster is DEL of the cluster's own network for a sandbox without a record.
func (s *Server) delCluster(ctx context.Context, c call) error {
	chain, err := s.clusterChain(c)
	if err != nil {
		s.log.Warn("a sandbox without a record is taken away without the cluster's own network", "sandbox", c.ContainerID, "error", err)
		return nil
	}
	var errs []error
	one := npwg.Selected{Default: true, Interface: c.IfName}
	for i, p := range slices.Backward(chain.Plugins) {
		if p.Native {
			continue
		}
		config, err := chain.PluginConfig(i, one, npwg.Call{Kubelet: c.conf.RuntimeConfig})
		if err == nil {
			config, err = withResult(config, c.prevResult())
		}
		if err == nil {
			err = s.config.Delegate.Del(ctx, c.delegated(p.Type, c.IfName, config))
		}
		if errors.Is(err, delegate.ErrNotThere) {
			s.log.Warn("a plugin of the cluster's own network is not there", "plugin", p.Type, "sandbox", c.ContainerID)
			err = nil
		}
		errs = append(errs, err)
	}
	return errors.Join(errs...)
}

// releaseUnknown gives back what a sandbox still has whose record is lost. As long as
// anything in its namespace has addresses, these may be ours: then they are free some
// minutes after the pod is gone, as where the journal of addresses is not open yet.
func (s *Server) releaseUnknown(ctx context.Context, c call) {
	if c.pod.uid == "" || s.config.Addresses.Ready() != nil {
		return
	}
	has, err := s.hasAddresses(c.NetNS)
	if err == nil && !has {
		err = s.config.Addresses.Release(ctx, holder.Key{PodUID: types.UID(c.pod.uid), Sandbox: c.ContainerID}, 0, nil)
	}
	if err != nil {
		s.log.Warn("addresses of a sandbox without a record are free only some minutes after its pod is gone", "sandbox", c.ContainerID, "error", err)
	}
}

// hasAddresses says whether there are addresses in a namespace by which others reach
// it; "" is one that is gone.
func (s *Server) hasAddresses(path string) (bool, error) {
	if path == "" {
		return false, nil
	}
	client, err := s.dial(path)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { _ = client.Close() }() // it is only asked
	addresses, err := client.Addresses()
	return slices.ContainsFunc(addresses, func(a rtnl.Address) bool {
		return !a.Prefix.Addr().IsLoopback() && !a.Prefix.Addr().IsLinkLocalUnicast()
	}), err
}
