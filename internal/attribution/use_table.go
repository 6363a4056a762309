package attribution

// idleKernelUsers are modules that have objects on a device without moving
// data of their own: the core's management queue pairs, which belong to the
// connections of others, and what drivers keep for themselves.
var idleKernelUsers = []string{
	"ib_core", "ib_cm", "ib_uverbs", "ib_umad", "rdma_cm", "iw_cm",
	"bnxt_re", "efa", "erdma", "hfi1", "hns_roce", "hns_roce_hw_v2", "ib_mthca", "ionic_rdma", "irdma", "iw_cxgb4",
	"mana_ib", "mlx4_ib", "mlx5_ib", "ocrdma", "qedr", "rdma_rxe", "rdmavt", "siw", "usnic_verbs", "vmw_pvrdma",
}
