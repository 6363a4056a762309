package exporter

import (
	"os"
	"syscall"
	"testing"
	"time"

	"railhead/internal/counters"
	"railhead/internal/kernel/fakekernel"
	"railhead/internal/kernel/rdmanl"
)

// TestOneQuestionRefused has the firmware fail at one question: what else the
// same source tells is still read, of ports above all.
func TestOneQuestionRefused(t *testing.T) {
	t.Parallel()
	const state, statistic = `rdma_port_state{device="mlx5_0",port="1",netdev="eth0",state="ACTIVE"`, `rdma_out_of_buffer_total{device="mlx5_0"`
	for _, tt := range []struct {
		refused           fakekernel.Request
		state, statistics string
	}{
		{fakekernel.GetStatistics, "1", ""},
		{fakekernel.GetPort, "", "1000"},
	} {
		r := newRig(t, 1, 1, nil)
		r.sample(0)
		r.node.own.Refuse(tt.refused, syscall.EIO, 0)
		for range 4 {
			r.sample(15*time.Second, counters.Errors)
		}
		r.want(map[string]string{
			state: tt.state, statistic: tt.statistics,
			`rdma_exporter_device_quarantined{device="mlx5_0",reason="EIO"`: "1",
		})
	}
}

// TestOneFileFails has a file of a port's counters hold nonsense: it alone is
// left out.
func TestOneFileFails(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 0, nil)
	dir := r.node.dir + "/sys/class/infiniband/mlx5_0/ports/1/counters"
	if err := os.MkdirAll(dir, 0o700); err != nil {
		t.Fatal(err)
	}
	for file, text := range map[string]string{"port_rcv_data": "250\n", "port_xmit_data": "nonsense\n"} {
		if err := os.WriteFile(dir+"/"+file, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	for range 5 {
		r.sample(5*time.Second, counters.Traffic)
	}
	r.want(map[string]string{
		`rdma_port_rcv_data_bytes_total{device="mlx5_0"`:                               "1000",
		`rdma_port_xmit_data_bytes_total{device="mlx5_0"`:                              "",
		`rdma_exporter_device_quarantined{device="mlx5_0",reason="other"`:              "1",
		`rdma_exporter_read_errors_total{device="mlx5_0",source="sysfs",errno="other"`: "3",
	})
}

// TestUsersAreKept has the kernel not tell who uses a device, and then not asks
// it for a while: whoever had used it still does.
func TestUsersAreKept(t *testing.T) {
	t.Parallel()
	r := newRig(t, 1, 0, nil)
	addThread(t, r.node.dir, pidA, pidA, uidA)
	r.node.own.ChangeHCA(0, func(h *fakekernel.HCA) {
		h.Contexts = append(h.Contexts, rdmanl.Context{Owner: rdmanl.Owner{PID: pidA}})
	})
	r.sample(0)
	r.node.counted.Add(7)
	r.sample(5 * time.Second)
	share := share("out_of_buffer_total", uidA, "sole_user")
	r.want(map[string]string{share: "7"})
	r.node.own.Refuse(fakekernel.GetContexts, syscall.EIO, 0)
	for range 4 {
		r.node.counted.Add(1)
		r.sample(15*time.Second, counters.Traffic)
		r.sample(0, counters.Errors)
	}
	r.want(map[string]string{share: "11"})
	r.node.own.Refuse(fakekernel.GetContexts, 0)
	r.node.own.ChangeHCA(0, func(h *fakekernel.HCA) { h.Contexts = nil })
	r.sample(time.Minute)
	r.want(map[string]string{share: ""})
}
