package top

import (
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// rowOf returns a row by its name.
func rowOf(t *testing.T, rows []Row, name string) Row {
	t.Helper()
	i := slices.IndexFunc(rows, func(r Row) bool { return r.Name == name })
	if i < 0 {
		t.Fatalf("there is no row %s", name)
	}
	return rows[i]
}

// TestRail wants a PF to have what its VFs do, and the speed of one link.
func TestRail(t *testing.T) {
	t.Parallel()
	row := rowOf(t, node(t).Devices, "mlx5_1")
	var sum float64
	var functions []string
	for _, f := range row.Functions {
		sum += f.Receive.value
		functions = append(functions, f.Name)
	}
	if row.Receive.value != sum || row.Functions[0].Receive.value >= sum {
		t.Errorf("received %v, want the sum of the functions, %v", row.Receive, sum)
	}
	if row.Speed != known(50e9) {
		t.Errorf("the speed is %v, want 50e9", row.Speed)
	}
	if diff := cmp.Diff([]string{"mlx5_1", "mlx5_11", "mlx5_12", "mlx5_13"}, functions); diff != "" {
		t.Errorf("functions (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{"train/llama-70b-worker-0", "train/llama-70b-worker-1"}, row.Pods); diff != "" {
		t.Errorf("pods (-want +got):\n%s", diff)
	}
}

// TestTwoPorts has a card with two ports on one function, whose VFs have one.
func TestTwoPorts(t *testing.T) {
	t.Parallel()
	f := frameOf(t, `rdma_port_info{device="mlx4_0",port="1",function="pf"} 1
rdma_port_info{device="mlx4_0",port="2",function="pf"} 1
rdma_port_info{device="mlx4_1",port="2",function="vf",vf_index="0",pf_device="mlx4_0"} 1
rdma_port_info{device="mlx4_2",port="1",function="vf",vf_index="1",pf_device="mlx4_0"} 1
rdma_port_info{device="mlx4_3",port="7",function="vf",vf_index="2",pf_device="mlx4_0"} 1
rdma_port_info{device="mlx9_3",port="1",function="vf",vf_index="0",pf_device="gone"} 1
`)
	got := map[string][]string{}
	for _, row := range f.Devices {
		got[row.Name] = nil
		for _, function := range row.Functions {
			got[row.Name] = append(got[row.Name], function.Name)
		}
	}
	want := map[string][]string{
		"mlx4_0/1": {"mlx4_0/1", "mlx4_2", "mlx4_3"},
		"mlx4_0/2": {"mlx4_0/2", "mlx4_1"},
		"mlx9_3":   nil,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("rows (-want +got):\n%s", diff)
	}
}

// TestSharedDevice wants no numbers of a pod that shares its device, and still
// what its port is like.
func TestSharedDevice(t *testing.T) {
	t.Parallel()
	row := rowOf(t, node(t).Pods, "debug/perftest")
	if _, isKnown := row.Receive.Get(); isKnown {
		t.Errorf("received %v, want that it is not known", row.Receive)
	}
	if row.PortPause.value < 0.05 || row.QueuePairs != known(4) || row.Workload != "Pod debug/perftest" {
		t.Errorf("the row is %+v", row)
	}
}

func TestWorkload(t *testing.T) {
	t.Parallel()
	f := node(t)
	row := rowOf(t, f.Workloads, "JobSet train/llama-70b")
	one, two := rowOf(t, f.Pods, "train/llama-70b-worker-0"), rowOf(t, f.Pods, "train/llama-70b-worker-1")
	if want := one.Receive.plus(two.Receive); row.Receive != want {
		t.Errorf("received %v, want %v", row.Receive, want)
	}
	if row.Utilisation != known(0.45) || len(row.Pods) != 2 || len(row.Devices) != 4 {
		t.Errorf("the row is %+v", row)
	}
}

func TestSeverity(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		row  Row
		want Severity
	}{
		{"nothing known", Row{}, Fine},
		{"busy", Row{State: stateActive, Rates: Rates{Receive: known(50e9), Utilisation: known(1)}}, Fine},
		{"down", Row{State: "DOWN"}, Critical},
		{"spare VF", Row{State: "DOWN", Function: "vf"}, Fine},
		{"retries exceeded", Row{Rates: Rates{RetriesExceeded: known(0.1)}}, Critical},
		{"retransmits", Row{Rates: Rates{Retransmits: known(0.1)}}, Warning},
		{"paused", Row{Rates: Rates{PauseSent: known(0.01)}}, Warning},
		{"paused now and then", Row{Rates: Rates{PauseSent: known(0.001)}}, Watch},
		{"congestion control", Row{Rates: Rates{CNPHandled: known(3)}}, Watch},
		{"stale", Row{Stale: "read 1m ago"}, Watch},
	} {
		if tt.row.judge(); tt.row.Severity != tt.want {
			t.Errorf("%s is %s, want %s", tt.name, tt.row.Severity, tt.want)
		}
	}
}

// TestStale says why numbers are old.
func TestStale(t *testing.T) {
	t.Parallel()
	const info = `rdma_port_info{device="mlx5_0",port="1"} 1` + "\n"
	for text, want := range map[string]string{
		info:                 "",
		info + age + "2":     "",
		info + age + "31.4":  "read 31s ago",
		info + age + "1e300": "read 8760h0m0s ago",
		info + `rdma_exporter_device_quarantined{device="mlx5_0",reason="timeout"} 1`: "quarantined: timeout",
		info + `rdma_exporter_device_quarantined{device="mlx5_0",reason="timeout"} 0`: "",
	} {
		if got := frameOf(t, text+"\n").Devices[0].Stale; got != want {
			t.Errorf("%s\nis stale: %q, want %q", text, got, want)
		}
	}
}

// TestOneBadDevice wants a device of which nonsense is told to hide no other.
func TestOneBadDevice(t *testing.T) {
	t.Parallel()
	bad := `rdma_port_receive_bytes_total{device="mlx5_9",port="1"} NaN
rdma_port_info{device="mlx5_9",port="1",vf_index="many",pf_device="mlx5_9"} 1
rdma_exporter_device_quarantined{device="mlx5_9",reason="errno 5"} 1
`
	f := frameOf(t, rx+"0\n"+bad, rx+"50\n"+bad)
	if row := rowOf(t, f.Devices, "mlx5_0"); row.Receive != known(5) {
		t.Errorf("mlx5_0 received %v, want 5", row.Receive)
	}
	if row := rowOf(t, f.Devices, "mlx5_9"); row.Stale != "quarantined: errno 5" {
		t.Errorf("mlx5_9 is stale: %q", row.Stale)
	}
}

func TestChosen(t *testing.T) {
	t.Parallel()
	f := node(t)
	got := f.Chosen(Choice{Order: "retrans", Filter: "LLAMA"})
	for _, tt := range []struct {
		rows []Row
		want []string
	}{
		{got.Devices, []string{"mlx5_1", "mlx5_0"}},
		{got.Pods, []string{"train/llama-70b-worker-1", "train/llama-70b-worker-0"}},
		{got.Workloads, []string{"JobSet train/llama-70b"}},
	} {
		var names []string
		for _, row := range tt.rows {
			names = append(names, row.Name)
		}
		if diff := cmp.Diff(tt.want, names); diff != "" {
			t.Errorf("rows (-want +got):\n%s", diff)
		}
	}
	if len(f.Devices) != 8 {
		t.Error("the frame itself was changed")
	}
	if none := f.Chosen(Choice{Order: Worst, Filter: "nothing has this"}); none.Pods == nil {
		t.Error("no pods are null in JSON, want an empty list")
	}
}
