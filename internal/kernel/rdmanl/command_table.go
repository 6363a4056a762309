package rdmanl

// commandFacts is what errors say of a command.
type commandFacts struct {
	name  string
	needs string // what a kernel must be, or a driver have, that does not answer EINVAL to a well-formed request; empty where EINVAL says nothing of that
}

// commands has a row for each command of this package. Versions are those of
// the commits that brought the commands.
var commands = map[Command]commandFacts{
	CmdGet:           {"GET", "Linux 4.14 or newer"},
	CmdSet:           {"SET", ""},
	CmdPortGet:       {"PORT_GET", ""},
	CmdSysGet:        {"SYS_GET", "Linux 5.2 or newer"},
	CmdSysSet:        {"SYS_SET", "Linux 5.2 or newer"},
	CmdResGet:        {"RES_GET", "Linux 4.16 or newer"},
	CmdResQPGet:      {"RES_QP_GET", ""},
	CmdResCMIDGet:    {"RES_CM_ID_GET", ""},
	CmdResCQGet:      {"RES_CQ_GET", ""},
	CmdResMRGet:      {"RES_MR_GET", ""},
	CmdResPDGet:      {"RES_PD_GET", ""},
	CmdGetCharDev:    {"GET_CHARDEV", "Linux 5.3 or newer"},
	CmdStatSet:       {"STAT_SET", ""},
	CmdStatGet:       {"STAT_GET", "Linux 5.3 or newer and a driver with hardware counters"},
	CmdStatDel:       {"STAT_DEL", ""},
	CmdResCtxGet:     {"RES_CTX_GET", "Linux 5.13 or newer"},
	CmdResSRQGet:     {"RES_SRQ_GET", "Linux 5.13 or newer"},
	CmdStatGetStatus: {"STAT_GET_STATUS", "Linux 5.16 or newer and a driver with hardware counters"},
	CmdMonitor:       {"MONITOR", "Linux 6.12 or newer"},
}
