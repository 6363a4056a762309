package top

import (
	"math"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const (
	here  = `{device="mlx5_0",port="1"} `
	rx    = "rdma_port_receive_bytes_total" + here
	age   = `rdma_exporter_sample_age_seconds{device="mlx5_0"} `
	state = `rdma_port_state{device="mlx5_0",port="1",state="ACTIVE"} 1` + "\n"
)

// ratesOf returns the numbers of the first device.
func ratesOf(t *testing.T, texts ...string) Rates {
	t.Helper()
	f := frameOf(t, texts...)
	if len(f.Devices) == 0 {
		t.Fatal("there is no device")
	}
	return f.Devices[0].Rates
}

func TestRates(t *testing.T) {
	t.Parallel()
	pause := `rdma_port_priority_pause_duration_seconds_total{device="mlx5_0",port="1",direction="rx",priority="3"} `
	tests := []struct {
		name  string
		texts []string // 10 seconds apart
		want  Rates
	}{
		{"grown", []string{rx + "100\n", rx + "300\n"}, Rates{Receive: known(20)}},
		{"not grown", []string{rx + "100\n", rx + "100\n"}, Rates{Receive: known(0)}},
		{"first sample", []string{rx + "100\n"}, Rates{}},
		{"reset", []string{rx + "100\n", rx + "30\n"}, Rates{Receive: known(3)}},
		{"reset to zero", []string{rx + "100\n", rx + "0\n"}, Rates{Receive: known(0)}},
		{"new series", []string{state, state + rx + "100\n"}, Rates{}},
		{"series that is gone", []string{state + rx + "100\n", state}, Rates{}},
		{"label order", []string{rx + "100\n", `rdma_port_receive_bytes_total{port="1",device="mlx5_0"} 300` + "\n"}, Rates{Receive: known(20)}},
		{"not a number", []string{rx + "100\n", state + rx + "NaN\n"}, Rates{}},
		{"negative", []string{rx + "-100\n", state + rx + "100\n"}, Rates{}},
		{"infinite", []string{rx + "1\n", state + rx + "+Inf\n"}, Rates{}},
		{
			"traffic is that of the last sample",
			[]string{rx + "0\n", rx + "1000\n", rx + "1020\n"},
			Rates{Receive: known(2)},
		},
		{
			"events are those of the window",
			[]string{"rdma_out_of_buffer_total" + here + "0\n", "rdma_out_of_buffer_total" + here + "1000\n", "rdma_out_of_buffer_total" + here + "1000\n"},
			Rates{OutOfBuffer: known(50)},
		},
		{
			"same sample twice",
			[]string{rx + "0\n" + age + "1\n", rx + "90\n" + age + "2\n", rx + "90\n" + age + "12\n"},
			Rates{Receive: known(10)},
		},
		{"never sampled again", []string{rx + "90\n" + age + "1\n", rx + "90\n" + age + "11\n"}, Rates{}},
		{
			"one counter under two names",
			[]string{
				"rdma_port_retransmit_timeouts_total" + here + "0\nrdma_local_ack_timeout_err_total" + here + "0\n",
				"rdma_port_retransmit_timeouts_total" + here + "50\nrdma_local_ack_timeout_err_total" + here + "50\n",
			},
			Rates{Retransmits: known(5)},
		},
		{
			"what a driver lacks counts for nothing",
			[]string{
				"rdma_packet_seq_err_total" + here + "0\nrdma_implied_nak_seq_err_total" + here + "0\n",
				"rdma_packet_seq_err_total" + here + "20\nrdma_implied_nak_seq_err_total" + here + "10\n",
			},
			Rates{Retransmits: known(3)},
		},
		{
			"flushes are no errors",
			[]string{
				"rdma_req_cqe_error_total" + here + "0\nrdma_req_cqe_flush_error_total" + here + "0\n",
				"rdma_req_cqe_error_total" + here + "50\nrdma_req_cqe_flush_error_total" + here + "40\n",
			},
			Rates{Errors: known(1)},
		},
		{
			"more flushes than errors",
			[]string{
				"rdma_req_cqe_error_total" + here + "0\nrdma_req_cqe_flush_error_total" + here + "0\n",
				"rdma_req_cqe_error_total" + here + "5\nrdma_req_cqe_flush_error_total" + here + "6\n",
			},
			Rates{Errors: known(0)},
		},
		{"paused", []string{pause + "0\n", pause + "2.5\n"}, Rates{PauseReceived: known(0.25)}},
		{"paused for longer than there was", []string{pause + "0\n", pause + "10.1\n"}, Rates{PauseReceived: known(1)}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tt.want, ratesOf(t, tt.texts...), cmp.AllowUnexported(Rate{})); diff != "" {
				t.Errorf("rates (-want +got):\n%s", diff)
			}
		})
	}
}

// TestClockBackwards wants no rates where time went back.
func TestClockBackwards(t *testing.T) {
	t.Parallel()
	history := History{Window: DefaultWindow}
	history.Add(parse(t, rx+"100\n", time.Minute))
	history.Add(parse(t, rx+"300\n", 0))
	if _, isKnown := history.Frame().Devices[0].Receive.Get(); isKnown {
		t.Error("there is a rate")
	}
}

// TestWindow wants scrapes that are older than the window to be forgotten.
func TestWindow(t *testing.T) {
	t.Parallel()
	history := History{Window: 30 * time.Second}
	for i := range 100 {
		history.Add(parse(t, state, time.Duration(i)*10*time.Second))
	}
	if got := len(history.scrapes); got != 4 {
		t.Errorf("%d scrapes are kept, want 4", got)
	}
	if got := history.Frame().Seconds; got != 30 {
		t.Errorf("the frame covers %g s, want 30", got)
	}
}

func TestNumbers(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		value             float64
		isUnknown         bool
		bits, bytes, part string
	}{
		{value: 0, bits: "0", bytes: "0", part: "0%"},
		{isUnknown: true, bits: "-", bytes: "-", part: "-"},
		{value: 0.001, bits: "<.01", bytes: "<.01", part: "<1%"},
		{value: 0.5, bits: "4", bytes: "0.5", part: "50%"},
		{value: 1, bits: "8", bytes: "1", part: "100%"},
		{value: 999.4, bits: "8k", bytes: "999", part: "999%"},
		{value: 999.5, bits: "8k", bytes: "1k", part: "999%"},
		{value: 12345, bits: "98.8k", bytes: "12.3k", part: "999%"},
		{value: 50e9, bits: "400G", bytes: "50G", part: "999%"},
		{value: math.MaxFloat64, bits: "-", bytes: ">999E", part: "999%"},
	} {
		r := known(tt.value)
		if tt.isUnknown {
			r = Rate{}
		}
		got := []string{Bits.throughput(r), Bytes.throughput(r), percent(r)}
		if diff := cmp.Diff([]string{tt.bits, tt.bytes, tt.part}, got); diff != "" {
			t.Errorf("%v (-want +got):\n%s", tt.value, diff)
		}
	}
}

// TestWidths wants every number to fit its column.
func TestWidths(t *testing.T) {
	t.Parallel()
	for value := 1e-6; value < 1e21; value *= 1.37 {
		if text := scaled(known(value)); len(text) > 5 {
			t.Errorf("%g is %q, which is longer than 5", value, text)
		}
		if text := percent(known(value)); len(text) > 4 {
			t.Errorf("%g is %q, which is longer than 4", value, text)
		}
	}
}

func TestCompareNames(t *testing.T) {
	t.Parallel()
	sortedNames := []string{"", "mlx5", "mlx5_0", "mlx5_0/2", "mlx5_1", "mlx5_2", "mlx5_10", "rxe0"}
	for i, a := range sortedNames {
		for k, b := range sortedNames {
			if got, want := compareNames(a, b) < 0, i < k; got != want {
				t.Errorf("%q before %q: %t, want %t", a, b, got, want)
			}
		}
	}
}
