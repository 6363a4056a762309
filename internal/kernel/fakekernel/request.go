package fakekernel

// Request is a kind of request, under the kernel's name for it and, where the
// kernel has one name for several questions, what is asked for.
type Request string

// The requests that a Kernel answers.
const (
	GetLink    Request = "RTM_GETLINK"
	GetVFs     Request = "RTM_GETLINK RTEXT_FILTER_VF"
	GetAddress Request = "RTM_GETADDR"
	GetPFC     Request = "RTM_GETDCB"

	GetSystem          Request = "RDMA_NLDEV_CMD_SYS_GET"
	GetDevice          Request = "RDMA_NLDEV_CMD_GET"
	GetPort            Request = "RDMA_NLDEV_CMD_PORT_GET"
	GetCharDevice      Request = "RDMA_NLDEV_CMD_GET_CHARDEV"
	GetResources       Request = "RDMA_NLDEV_CMD_RES_GET"
	GetContexts        Request = "RDMA_NLDEV_CMD_RES_CTX_GET"
	GetPDs             Request = "RDMA_NLDEV_CMD_RES_PD_GET"
	GetCQs             Request = "RDMA_NLDEV_CMD_RES_CQ_GET"
	GetQPs             Request = "RDMA_NLDEV_CMD_RES_QP_GET" //nolint:revive // queue pairs, not queries per second
	GetCMIDs           Request = "RDMA_NLDEV_CMD_RES_CM_ID_GET"
	GetMRs             Request = "RDMA_NLDEV_CMD_RES_MR_GET"
	GetSRQs            Request = "RDMA_NLDEV_CMD_RES_SRQ_GET"
	GetStatistics      Request = "RDMA_NLDEV_CMD_STAT_GET"
	GetCounterStatuses Request = "RDMA_NLDEV_CMD_STAT_GET_STATUS"
	GetCounterMode     Request = "RDMA_NLDEV_CMD_STAT_GET STAT_MODE"
	GetQPCounters      Request = "RDMA_NLDEV_CMD_STAT_GET RES_QP"
	SetCounters        Request = "RDMA_NLDEV_CMD_STAT_SET"
	DeleteCounter      Request = "RDMA_NLDEV_CMD_STAT_DEL"

	GetLinkModes  Request = "ETHTOOL_MSG_LINKMODES_GET"
	GetLinkInfo   Request = "ETHTOOL_MSG_LINKINFO_GET"
	GetLinkState  Request = "ETHTOOL_MSG_LINKSTATE_GET"
	GetFeatures   Request = "ETHTOOL_MSG_FEATURES_GET"
	GetPause      Request = "ETHTOOL_MSG_PAUSE_GET"
	GetPauseStats Request = "ETHTOOL_MSG_PAUSE_GET ETHTOOL_FLAG_STATS"
	GetFEC        Request = "ETHTOOL_MSG_FEC_GET"
	GetFECStats   Request = "ETHTOOL_MSG_FEC_GET ETHTOOL_FLAG_STATS"

	GetStandardStats Request = "ETHTOOL_MSG_STATS_GET"

	GetDriverInfo Request = "ETHTOOL_GDRVINFO"
	GetStatNames  Request = "ETHTOOL_GSTRINGS"
	GetStats      Request = "ETHTOOL_GSTATS"

	GetHealthReporters Request = "DEVLINK_CMD_HEALTH_REPORTER_GET"
	DiagnoseHealth     Request = "DEVLINK_CMD_HEALTH_REPORTER_DIAGNOSE"

	getFamily     Request = "CTRL_CMD_GETFAMILY"
	anyOtherThing Request = ""
)
