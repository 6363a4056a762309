package fakekernel

import (
	"golang.org/x/sys/unix"

	"railhead/internal/kernel/rdmanl"
)

// rdmaQuestions are the commands of nldev that are answered, but for STAT_GET.
var rdmaQuestions = map[rdmanl.Command]rdmaQuestion{
	rdmanl.CmdSysGet:        {request: GetSystem, answer: (*Kernel).system},
	rdmanl.CmdGet:           {request: GetDevice, answer: (*Kernel).devices},
	rdmanl.CmdPortGet:       {request: GetPort, answer: (*Kernel).ports},
	rdmanl.CmdGetCharDev:    {request: GetCharDevice, answer: (*Kernel).charDevice},
	rdmanl.CmdStatGetStatus: {request: GetCounterStatuses, answer: (*Kernel).counterStatuses},
	rdmanl.CmdStatSet:       {request: SetCounters, answer: (*Kernel).setCounters, changes: true},
	rdmanl.CmdStatDel:       {request: DeleteCounter, answer: (*Kernel).deleteCounter, changes: true},
	rdmanl.CmdResGet:        {request: GetResources, answer: (*Kernel).resources},
	rdmanl.CmdResCtxGet: {request: GetContexts, answer: objects(
		func(h *HCA) []rdmanl.Context { return h.Contexts }, rdmanl.AttrResCtx, rdmanl.AttrResCtxEntry, putContext)},
	rdmanl.CmdResPDGet: {request: GetPDs, answer: objects(
		func(h *HCA) []rdmanl.PD { return h.PDs }, rdmanl.AttrResPD, rdmanl.AttrResPDEntry, putPD)},
	rdmanl.CmdResCQGet: {request: GetCQs, answer: objects(
		func(h *HCA) []rdmanl.CQ { return h.CQs }, rdmanl.AttrResCQ, rdmanl.AttrResCQEntry, putCQ)},
	rdmanl.CmdResQPGet: {request: GetQPs, answer: objects(
		func(h *HCA) []rdmanl.QP { return h.QPs }, rdmanl.AttrResQP, rdmanl.AttrResQPEntry, putQP)},
	rdmanl.CmdResCMIDGet: {request: GetCMIDs, answer: objects(
		func(h *HCA) []rdmanl.CMID { return h.CMIDs }, rdmanl.AttrResCMID, rdmanl.AttrResCMIDEntry, putCMID)},
	rdmanl.CmdResMRGet: {request: GetMRs, answer: objects(
		func(h *HCA) []rdmanl.MR { return h.MRs }, rdmanl.AttrResMR, rdmanl.AttrResMREntry, putMR)},
	rdmanl.CmdResSRQGet: {request: GetSRQs, answer: objects(
		func(h *HCA) []rdmanl.SRQ { return h.SRQs }, rdmanl.AttrResSRQ, rdmanl.AttrResSRQEntry, putSRQ)},
}

// settingsQuestions are the commands about link settings that are answered, by
// ETHTOOL_MSG_*_GET.
var settingsQuestions = map[uint8]settingsQuestion{
	unix.ETHTOOL_MSG_LINKMODES_GET: {GetLinkModes, unix.ETHTOOL_MSG_LINKMODES_GET_REPLY, putLinkModes},
	unix.ETHTOOL_MSG_LINKINFO_GET:  {GetLinkInfo, unix.ETHTOOL_MSG_LINKINFO_GET_REPLY, putLinkSettingsPort},
	unix.ETHTOOL_MSG_LINKSTATE_GET: {GetLinkState, unix.ETHTOOL_MSG_LINKSTATE_GET_REPLY, putLinkState},
	unix.ETHTOOL_MSG_FEATURES_GET:  {GetFeatures, unix.ETHTOOL_MSG_FEATURES_GET_REPLY, putNothing},
}

// nicQuestions are the commands about what NICs count that are answered.
var nicQuestions = map[uint8]nicQuestion{
	unix.ETHTOOL_MSG_PAUSE_GET: {GetPause, GetPauseStats, unix.ETHTOOL_MSG_PAUSE_GET_REPLY, putPause},
	unix.ETHTOOL_MSG_FEC_GET:   {GetFEC, GetFECStats, unix.ETHTOOL_MSG_FEC_GET_REPLY, putFEC},
}
