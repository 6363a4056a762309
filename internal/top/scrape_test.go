package top

import (
	"encoding/json"
	"math"
	"strings"
	"testing"
	"time"
)

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for name, text := range map[string]string{
		"web page":       "<!DOCTYPE html>\n<html><body>metrics</body></html>\n",
		"cut off":        rx + "100\nrdma_port_receive_bytes_total{device=",
		"no value":       "rdma_port_receive_bytes_total{}\n",
		"value no float": rx + "many\n",
	} {
		if _, err := Parse([]byte(text), start); err == nil || !strings.Contains(err.Error(), "text format") {
			t.Errorf("%s: error %v does not name the format", name, err)
		}
	}
}

// TestSameSeriesTwice wants the first of them.
func TestSameSeriesTwice(t *testing.T) {
	t.Parallel()
	r := ratesOf(t, rx+"100\n"+rx+"500\n", rx+"300\n"+rx+"500\n")
	if r.Receive != known(20) {
		t.Errorf("received %v, want 20", r.Receive)
	}
}

// FuzzFrame reads any two texts. Whatever they say, no number is negative,
// infinite or none, and the screen is as large as the terminal.
func FuzzFrame(f *testing.F) {
	f.Add(readFile(f, "node-0s.prom"), readFile(f, "node-10s.prom"))
	f.Add(rx+"1e308\n"+age+"1e300\n", rx+"1e-308\n"+age+"0.1\n")
	f.Add(`rdma_port_info{device="a",port="1",pf_device="b",function="vf",vf_index="-1"} 1`, `rdma_port_info{device="b",port="2",pf_device="a"} 1`)
	f.Add(`rdma_pod_qps{pod_name="a"} 1e308`, `rdma_pod_qps{pod_name="a",device="b"} 1.7e308`)
	f.Add("rdma_port_speed_bytes_per_second"+here+"5e-324\n"+rx+"0\n", "rdma_port_speed_bytes_per_second"+here+"5e-324\n"+rx+"1e308\n")
	f.Fuzz(func(t *testing.T, before, after string) {
		history := History{Window: DefaultWindow}
		for i, text := range []string{before, after} {
			s, err := Parse([]byte(text), start.Add(time.Duration(i)*time.Second))
			if err != nil {
				return
			}
			history.Add(s)
		}
		frame := history.Frame()
		for _, rows := range [][]Row{frame.Devices, frame.Pods, frame.Workloads} {
			checkNumbers(t, rows)
		}
		if _, err := json.Marshal(frame); err != nil {
			t.Error(err)
		}
		for _, keys := range [][]string{{"v"}, {"p"}, {"w", "end"}} {
			checkSize(t, screenOf(t, frame, 80, 24, keys...).String(), 80, 24)
		}
	})
}

func checkNumbers(t *testing.T, rows []Row) {
	t.Helper()
	for i := range rows {
		row := &rows[i]
		numbers := []Rate{row.Speed, row.Utilisation, row.QueuePairs, row.PortPause}
		for _, q := range quantities {
			numbers = append(numbers, *q.of(&row.Rates))
		}
		for _, n := range numbers {
			if !(n.value >= 0) || math.IsInf(n.value, 0) || !n.isKnown && n.value != 0 {
				t.Errorf("%s has the number %v", row.Name, n)
			}
		}
		checkNumbers(t, row.Functions)
	}
}
