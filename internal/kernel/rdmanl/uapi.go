package rdmanl

import (
	"strconv"

	"github.com/mdlayher/netlink"
)

// Numbers of include/uapi/rdma/rdma_netlink.h that this package speaks. They
// are exported for those who play the kernel: tests and the simulated HCA.

// family is NETLINK_RDMA; nldev is its client RDMA_NL_NLDEV.
const (
	family = 20
	nldev  = 5
)

// NotifyGroup is the multicast group of monitor events, RDMA_NL_GROUP_NOTIFY.
const NotifyGroup = 4

// Command is a number of enum rdma_nldev_command.
type Command uint16

// Commands of nldev.
const (
	CmdGet           Command = 1
	CmdSet           Command = 2
	CmdPortGet       Command = 5
	CmdSysGet        Command = 6
	CmdSysSet        Command = 7
	CmdResGet        Command = 9
	CmdResQPGet      Command = 10
	CmdResCMIDGet    Command = 11
	CmdResCQGet      Command = 12
	CmdResMRGet      Command = 13
	CmdResPDGet      Command = 14
	CmdGetCharDev    Command = 15
	CmdStatSet       Command = 16
	CmdStatGet       Command = 17
	CmdStatDel       Command = 18
	CmdResCtxGet     Command = 22
	CmdResSRQGet     Command = 23
	CmdStatGetStatus Command = 24
	CmdMonitor       Command = 28
)

// HeaderType returns the netlink message type of the command.
func (c Command) HeaderType() netlink.HeaderType {
	return netlink.HeaderType(nldev<<10 + c)
}

// CommandOf returns the nldev command of a message type; ok is false for
// messages of other clients of NETLINK_RDMA.
func CommandOf(t netlink.HeaderType) (c Command, ok bool) {
	return Command(t & 0x3ff), t>>10 == nldev
}

// String returns the command's name without its prefix, "PORT_GET"; the number
// in decimal where this package has no name for it.
func (c Command) String() string {
	if facts, ok := commands[c]; ok {
		return facts.name
	}
	return strconv.Itoa(int(c))
}

// Attributes of nldev, enum rdma_nldev_attr.
const (
	AttrPad                     = 0
	AttrDevIndex                = 1
	AttrDevName                 = 2
	AttrPortIndex               = 3
	AttrCapFlags                = 4
	AttrFWVersion               = 5
	AttrNodeGUID                = 6
	AttrSysImageGUID            = 7
	AttrSubnetPrefix            = 8
	AttrLID                     = 9
	AttrSMLID                   = 10
	AttrLMC                     = 11
	AttrPortState               = 12
	AttrPortPhysState           = 13
	AttrDevNodeType             = 14
	AttrResSummary              = 15
	AttrResSummaryEntry         = 16
	AttrResSummaryEntryName     = 17
	AttrResSummaryEntryCurr     = 18
	AttrResQP                   = 19
	AttrResQPEntry              = 20
	AttrResLQPN                 = 21
	AttrResRQPN                 = 22
	AttrResRQPSN                = 23
	AttrResSQPSN                = 24
	AttrResPathMigState         = 25
	AttrResType                 = 26
	AttrResState                = 27
	AttrResPID                  = 28
	AttrResKernName             = 29
	AttrResCMID                 = 30
	AttrResCMIDEntry            = 31
	AttrResPS                   = 32
	AttrResSrcAddr              = 33
	AttrResDstAddr              = 34
	AttrResCQ                   = 35
	AttrResCQEntry              = 36
	AttrResCQE                  = 37
	AttrResUseCount             = 38
	AttrResPollCtx              = 39
	AttrResMR                   = 40
	AttrResMREntry              = 41
	AttrResRKey                 = 42
	AttrResLKey                 = 43
	AttrResIOVA                 = 44
	AttrResMRLen                = 45
	AttrResPD                   = 46
	AttrResPDEntry              = 47
	AttrResLocalDMALKey         = 48
	AttrResUnsafeGlobalRKey     = 49
	AttrNetdevIndex             = 50
	AttrNetdevName              = 51
	AttrResPDN                  = 60
	AttrResCQN                  = 61
	AttrResMRN                  = 62
	AttrResCMIDN                = 63
	AttrResCtxN                 = 64
	AttrSysNetNSMode            = 66
	AttrDevProtocol             = 67
	AttrNetNSFD                 = 68
	AttrCharDevType             = 69
	AttrCharDevName             = 70
	AttrCharDevABI              = 71
	AttrCharDev                 = 72
	AttrUverbsDriverID          = 73
	AttrStatMode                = 74
	AttrStatRes                 = 75
	AttrStatAutoModeMask        = 76
	AttrStatCounter             = 77
	AttrStatCounterEntry        = 78
	AttrStatCounterID           = 79
	AttrStatHWCounters          = 80
	AttrStatHWCounterEntry      = 81
	AttrStatHWCounterEntryName  = 82
	AttrStatHWCounterEntryValue = 83
	AttrDevDIM                  = 84
	AttrResCtx                  = 86
	AttrResCtxEntry             = 87
	AttrResSRQ                  = 88
	AttrResSRQEntry             = 89
	AttrResSRQN                 = 90
	AttrMinRange                = 91
	AttrMaxRange                = 92
	AttrSysCopyOnFork           = 93
	AttrStatHWCounterIndex      = 94
	AttrStatHWCounterDynamic    = 95
	AttrSysPrivilegedQKeyMode   = 96
	AttrResSubtype              = 98
	AttrDevType                 = 99
	AttrParentName              = 100
	AttrNameAssignType          = 101
	AttrEventType               = 102
	AttrSysMonitorMode          = 103
	AttrStatOpCounterEnabled    = 104
)
