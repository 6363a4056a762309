package cniserver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"

	types100 "github.com/containernetworking/cni/pkg/types/100"

	"railhead/internal/attach"
	"railhead/internal/attach/plugin"
	"railhead/internal/attach/record"
	"railhead/internal/cnicall"
)

// addIfacer has the bond or VLAN made that the plugin behind makes an interface on,
// as for a pod of ours, and shared with those. Each interface has a record of it.
func (s *Server) addIfacer(ctx context.Context, c call) (json.RawMessage, error) {
	unlock, err := s.lock(ctx, ifacerID(c.ContainerID, c.IfName))
	if err != nil {
		return nil, err
	}
	defer unlock()
	result, err := c.passedOn()
	if err != nil {
		return nil, err
	}
	a, err := s.begin(ctx, c)
	defer a.end()
	if err == nil {
		err = s.ifacer(ctx, a)
	}
	if err != nil {
		if a.pod != nil {
			err = coded(codeOf(err), fmt.Errorf("pod %s: interface %s: plugin %s: %w", a.podName(), c.IfName, pluginIfacer, err))
		}
		s.tell(ctx, a, err)
		return nil, err
	}
	return printed(result, c.conf.CNIVersion)
}

// passedOn is the result of the plugins in front, and an empty one where there are
// none.
func (c call) passedOn() (*types100.Result, error) {
	switch result := c.prevResult(); {
	case result != nil:
		return result, nil
	case len(c.conf.PrevResult) == 0 || string(c.conf.PrevResult) == "null":
		return &types100.Result{CNIVersion: types100.ImplementedSpecVersion}, nil
	}
	return nil, coded(cnicall.CodeDecode, fmt.Errorf("prevResult: want a result of cniVersion %s", c.conf.CNIVersion))
}

// ifacer plans, records and makes what an interface is to stand on. What an ADD
// before it made is looked at again.
func (s *Server) ifacer(ctx context.Context, a *attempt) error {
	parent, err := plugin.Ifacer(a.call.Config)
	if err != nil {
		return coded(cnicall.CodeConfig, err)
	}
	element, err := elementOf(a.call.Config)
	if err != nil {
		return err
	}
	a.att.ContainerID = ifacerID(a.call.ContainerID, a.call.IfName)
	if had, ok := s.config.Records.Get(a.att.ContainerID); ok {
		if had.State == record.Attached && had.Plan != nil && had.ID == a.att.ID && had.BootID == a.att.BootID {
			return s.ifacerAgain(ctx, had, element)
		}
		undo, stop := detached(ctx)
		defer stop()
		if err := s.takeAway(undo, a.call, had, nil); err != nil {
			return fmt.Errorf("what an earlier attempt left: %w", err)
		}
	}
	a.att.Networks = []record.Network{{
		Name: a.call.conf.Name, Interface: a.call.IfName, From: fromBelow, Default: a.call.IfName == "eth0",
		Delegated: []record.Delegate{{Type: pluginIfacer, IfName: a.call.IfName, Config: element, Chain: atBelow}},
	}}
	a.att.Plan, err = s.config.Attacher.Plan(ctx, attach.Pod{
		ContainerID: a.att.ContainerID, NetNS: a.path, Parents: []attach.Parent{*parent},
	})
	if err != nil {
		return err
	}
	if err := s.makeParent(ctx, a); err != nil {
		undo, stop := detached(ctx)
		defer stop()
		return failed(err, s.takeAway(undo, a.call, a.att, nil))
	}
	return nil
}

// ifacerAgain makes what is not there any more of what was made for an interface.
func (s *Server) ifacerAgain(ctx context.Context, had record.Attachment, element json.RawMessage) error {
	for _, n := range had.Networks {
		for _, d := range n.Delegated {
			if !bytes.Equal(d.Config, element) {
				return coded(cnicall.CodeConfig, fmt.Errorf("%s: the interface stands on what %s made: want one %s for an interface, or DEL first", element, d.Config, pluginIfacer))
			}
		}
	}
	_, err := s.config.Attacher.Apply(ctx, had.Plan)
	return err
}

// makeParent records what is planned, and makes it.
func (s *Server) makeParent(ctx context.Context, a *attempt) error {
	if err := s.keep(a); err != nil {
		return err
	}
	if _, err := s.config.Attacher.Apply(ctx, a.att.Plan); err != nil {
		return err
	}
	if err := s.await(ctx, a); err != nil {
		return err
	}
	a.att.State = record.Attached
	return s.note(a)
}

// checkIfacer compares what an interface stands on with the kernel.
func (s *Server) checkIfacer(ctx context.Context, c call) error {
	att, ok := s.config.Records.Get(ifacerID(c.ContainerID, c.IfName))
	err := errors.New("nothing was made for it")
	switch {
	case !ok || att.State != record.Attached || att.Plan == nil:
		err = coded(cnicall.CodeContainer, err)
	default:
		err = s.config.Attacher.Check(ctx, att.Plan)
	}
	if err != nil {
		err = fmt.Errorf("sandbox %s: interface %s: plugin %s: %w", c.ContainerID, c.IfName, pluginIfacer, err)
	}
	return err
}
