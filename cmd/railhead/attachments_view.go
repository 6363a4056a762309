package main

import (
	"time"

	"railhead/internal/attach"
	"railhead/internal/attach/record"
)

// States of attachments, beside those of package record.
const (
	stateOK          = "ok"
	stateDiffers     = "differs"
	stateGone        = "namespace gone"
	stateNotCompared = "not compared"
)

// attachmentView is an attachment for people and programs.
type attachmentView struct {
	Namespace   string    `json:"namespace"`
	Name        string    `json:"name"`
	PodUID      string    `json:"podUID,omitempty"`
	ContainerID string    `json:"containerID"`
	NetNS       string    `json:"netns,omitempty"`
	At          time.Time `json:"at,omitzero"`
	// State is what became of it; Differences are from what was made.
	State       string   `json:"state"`
	Differences []string `json:"differences,omitempty"`
	// Newer says that a later release wrote it, and that there is more to it.
	Newer    int           `json:"newer,omitempty"`
	Networks []networkView `json:"networks,omitempty"`
	Report   record.Report `json:"report"`

	plan *attach.Plan
}

// networkView is a network of an attachment.
type networkView struct {
	Interface string   `json:"interface,omitempty"`
	Name      string   `json:"name,omitempty"` // of the CNI network
	NAD       string   `json:"nad,omitempty"`  // namespace/name
	From      string   `json:"from,omitempty"`
	Default   bool     `json:"default,omitempty"`
	Run       []string `json:"run,omitempty"` // plugins of others, in order
}

// viewOf is an attachment; its State is empty if it is to be compared.
func viewOf(a record.Attachment) attachmentView {
	v := attachmentView{
		Namespace: a.Namespace, Name: a.Name, PodUID: a.PodUID, ContainerID: a.ContainerID, NetNS: a.NetNS,
		At: a.At, Newer: a.Newer, Report: a.Whole(), plan: a.Plan,
	}
	for _, n := range a.Networks {
		network := networkView{Interface: n.Interface, Name: n.Name, NAD: n.NAD, From: n.From, Default: n.Default}
		for _, d := range n.Delegated {
			network.Run = append(network.Run, d.Type)
		}
		v.Networks = append(v.Networks, network)
	}
	switch {
	case a.State == record.Attaching || a.State == record.Detaching:
		v.State = string(a.State)
	case a.Plan == nil || a.Newer != 0 || a.Plan.Version > attach.Version:
		v.State = stateNotCompared
	}
	return v
}
