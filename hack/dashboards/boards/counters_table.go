package boards

// counterPanel is a panel of one counter: the title and the name behind the
// rdma_ of the device's family, behind rdma_pod_ of the pod's.
type counterPanel struct {
	title, name, about string
}

// requests are what peers asked of us.
var requests = []counterPanel{
	{"RX write requests", "rx_write_requests", ""},
	{"RX read requests", "rx_read_requests", ""},
	{"RX atomic requests", "rx_atomic_requests", ""},
	{"RX DCT connect", "rx_dct_connect", ""},
}

// losses are what got lost or came in another order, and was sent again.
var losses = []counterPanel{
	{"Out of buffer", "out_of_buffer", "Look at the receiving application, not at the fabric."},
	{"Out of sequence", "out_of_sequence", "With adaptive routing some of it is normal."},
	{"Duplicate request", "duplicate_request", ""},
	{"RNR NAK retry error", "rnr_nak_retry_err", "The peer's application posts too few receives."},
	{"Packet sequence error", "packet_seq_err", "The peer saw a gap in what we sent: loss on the way there."},
	{"Implied NAK sequence error", "implied_nak_seq_err", ""},
	{"Local ACK timeout error", "local_ack_timeout_err", "The best single sign of silent loss."},
}

// failures are requests that ended in an error.
var failures = []counterPanel{
	{"Resp local length error", "resp_local_length_error", ""},
	{"Resp CQE error", "resp_cqe_error", ""},
	{"Req CQE error", "req_cqe_error", ""},
	{"Req remote invalid request", "req_remote_invalid_request", ""},
	{"Req detected remote access errors", "req_remote_access_errors", ""},
	{"Resp detected remote access errors", "resp_remote_access_errors", ""},
	{"Resp CQE flush error", "resp_cqe_flush_error", ""},
	{"Req CQE flush error", "req_cqe_flush_error", ""},
}

// roce is how RoCE adapts to loss.
var roce = []counterPanel{
	{"RoCE adaptive retransmissions", "roce_adp_retrans", ""},
	{"RoCE adaptive retransmission timeouts", "roce_adp_retrans_to", ""},
	{"RoCE slow restart", "roce_slow_restart", ""},
	{"RoCE slow restart CNPs", "roce_slow_restart_cnps", "Generated here: CNPs can be handled without any congestion in the fabric."},
	{"RoCE slow restart transitions", "roce_slow_restart_trans", ""},
}

// draw makes the panel from a query on the family whose name begins as said.
func (c counterPanel) draw(prefix, legend string, query func(family string) string) Panel {
	return Panel{
		Title: c.title, Family: prefix + c.name, About: c.about, Unit: perSecond,
		Queries: []Query{{legend, query(prefix + c.name)}},
	}
}

func drawAll(list []counterPanel, prefix, legend string, query func(family string) string) []Panel {
	var panels []Panel
	for _, c := range list {
		panels = append(panels, c.draw(prefix, legend, query))
	}
	return panels
}
