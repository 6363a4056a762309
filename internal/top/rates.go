package top

// Rates are the numbers of a row. All but Speed, QueuePairs and the ratios are
// per second.
type Rates struct {
	Speed            Rate `json:"speed_bytes_per_second,omitzero"` // of the link, in each direction
	Receive          Rate `json:"receive_bytes_per_second,omitzero"`
	Transmit         Rate `json:"transmit_bytes_per_second,omitzero"`
	ReceivePackets   Rate `json:"receive_packets_per_second,omitzero"`
	TransmitPackets  Rate `json:"transmit_packets_per_second,omitzero"`
	Utilisation      Rate `json:"utilisation_ratio,omitzero"` // of the speed, in the busier direction
	PauseReceived    Rate `json:"pause_received_ratio,omitzero"`
	PauseSent        Rate `json:"pause_sent_ratio,omitzero"`
	PauseFrames      Rate `json:"pause_frames_per_second,omitzero"`
	TransmitWait     Rate `json:"transmit_wait_ticks_per_second,omitzero"` // InfiniBand: data was there, credits were not
	Retransmits      Rate `json:"retransmits_per_second,omitzero"`         // timeouts, sequence NAKs, implied NAKs, retries exceeded
	RetriesExceeded  Rate `json:"retries_exceeded_per_second,omitzero"`    // each ended a queue pair
	OutOfSequence    Rate `json:"out_of_sequence_per_second,omitzero"`
	ReceiverNotReady Rate `json:"receiver_not_ready_naks_per_second,omitzero"`
	ECNMarked        Rate `json:"ecn_marked_packets_per_second,omitzero"`
	CNPSent          Rate `json:"cnp_sent_per_second,omitzero"`
	CNPHandled       Rate `json:"cnp_handled_per_second,omitzero"`
	Discards         Rate `json:"discards_per_second,omitzero"`      // by the port, for lack of buffers
	OutOfBuffer      Rate `json:"out_of_buffer_per_second,omitzero"` // by the receiver, which had posted nothing
	Errors           Rate `json:"errors_per_second,omitzero"`        // of completions (but flushes), the link and the wire
	QueuePairs       Rate `json:"queue_pairs,omitzero"`
}

// plus adds what another function or device of the same row does. The port
// stands for pauses and speed: they add up for none.
func (r *Rates) plus(other *Rates) {
	for _, q := range quantities {
		of := q.of(r)
		if q.isRatio {
			*of = most(*of, *q.of(other))
		} else {
			*of = of.plus(*q.of(other))
		}
	}
	r.QueuePairs = r.QueuePairs.plus(other.QueuePairs)
}

// utilise sets how much of the speed is used.
func (r *Rates) utilise() { r.Utilisation = most(r.Receive, r.Transmit).over(r.Speed) }

// pauses returns the part of the time in which a direction stood still.
func (r *Rates) pauses() Rate { return most(r.PauseReceived, r.PauseSent) }

// cnps returns all that congestion control said.
func (r *Rates) cnps() Rate { return r.CNPSent.plus(r.CNPHandled) }
