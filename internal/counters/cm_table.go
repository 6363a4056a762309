package counters

// cmMessages are the messages of ib_cm, drivers/infiniband/core/cm.c.
const cmMessages = "req mra rej rep rtu dreq drep sidr_req sidr_rep lap apr"

// cmDirs are the directories in which ib_cm counts them, each with what it
// feeds, but for the message.
var cmDirs = []struct{ name, feeds string }{
	{"cm_tx_msgs", "rdma_port_cm_messages tx "},
	{"cm_rx_msgs", "rdma_port_cm_messages rx "},
	{"cm_tx_retries", "rdma_port_cm_retries "},
	{"cm_rx_duplicates", "rdma_port_cm_duplicates "},
}

// cmStats are counters of ib_cm, which the kernel keeps in software, 64 bits
// wide.
var cmStats = cmSet()
