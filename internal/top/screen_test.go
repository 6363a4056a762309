package top

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"
)

// names returns the first column of the rows in sight.
func names(s *screen) []string {
	var list []string
	for _, line := range strings.Split(s.String(), "\n")[4 : s.height-2] {
		if fields := strings.Fields(strings.TrimLeft(line, ">!* ")); len(fields) > 0 {
			list = append(list, fields[0])
		}
	}
	return list
}

func TestKeys(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		name string
		keys string // apart from each other by spaces
		want string // on the screen
		not  string // not on it
	}{
		{"pods", "p", "[pods]", "[devices]"},
		{"workloads", "w", "JobSet train/llama-70b", "llama-70b-worker"},
		{"tab", "d tab p tab", "[workloads]", "[devices]"},
		{"tab around", "w tab", "[devices]", "[pods]"},
		{"unit", "u", "B/s", "bit/s"},
		{"unit and back", "u u", "bit/s", "B/s"},
		{"order", "s", "by name", "by worst"},
		{"order back", "s <", "by worst", "by name"},
		{"order from the last", "<", "by errors", "by worst"},
		{"order that the next view lacks", "< < p", "by worst", "by cnp"},
		{"reverse", "r", "reversed", ""},
		{"functions", "v", "mlx5_9 VF 1", ""},
		{"filter", "/ m l x 5 _ 3", "1 device:", "mlx5_4"},
		{"filter by pod", "/ p e r f enter", "mlx5_4", "mlx5_3"},
		{"filter that is typed holds keys", "/ q p enter", "filter qp", "[pods]"},
		{"filter cleared", "/ 3 enter esc", "mlx5_4", "filter 3"},
		{"filter given up", "/ 3 esc", "mlx5_4", "filter 3"},
		{"filter mended", "/ z backspace 3 enter", "filter 3", "filter z"},
		{"filter begun again", "/ z ctrl+u backspace 3 enter", "filter 3", "filter z"},
		{"filter that nothing has", "/ z y enter", "esc clears the filter", "mlx5"},
		{"help", "?", "sort by the next column", "mlx5_3"},
		{"help goes on", "? q", "TX         sent", "mlx5_3"},
		{"help goes back", "? q q", "mlx5_3", "sort by the next column"},
		{"down", "j", ">!mlx5_3", ">!mlx5_5"},
		{"down and up", "j k", ">!mlx5_5", ">!mlx5_3"},
		{"end", "G", "> mlx5_0", ">!mlx5_5"},
		{"beyond the end", "end down pgdown", "> mlx5_0", ">!mlx5_5"},
		{"beyond the start", "j g up pgup", ">!mlx5_5", "> mlx5_0"},
		{"unknown key", "X", "mlx5_3", ""},
	} {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			s := screenOf(t, node(t), 80, 24)
			if isEnd := pressAll(s, strings.Fields(tt.keys)...); isEnd {
				t.Error("that was the end")
			}
			text := s.String()
			if !strings.Contains(text, tt.want) {
				t.Errorf("%q is not on the screen:\n%s", tt.want, text)
			}
			if tt.not != "" && strings.Contains(text, tt.not) {
				t.Errorf("%q is on the screen:\n%s", tt.not, text)
			}
		})
	}
}

func TestQuit(t *testing.T) {
	t.Parallel()
	for keys, want := range map[string]bool{"q": true, "ctrl+c": true, "/ ctrl+c": true, "? ctrl+c": true, "/ q": false} {
		s := screenOf(t, node(t), 80, 24)
		if got := pressAll(s, strings.Fields(keys)...); got != want {
			t.Errorf("%s ends: %t, want %t", keys, got, want)
		}
	}
}

// TestManyRows moves through more rows than there is place for.
func TestManyRows(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	for i := range 300 {
		fmt.Fprintf(&b, "rdma_port_state{device=\"mlx5_%d\",port=\"1\",state=\"ACTIVE\"} 1\n", i)
	}
	s := screenOf(t, frameOf(t, b.String()), 80, 24)
	for _, step := range []struct {
		key         string
		first, last string
	}{
		{"", "mlx5_0", "mlx5_17"},
		{"pgdown", "mlx5_1", "mlx5_18"},
		{"pgdown", "mlx5_19", "mlx5_36"},
		{"up", "mlx5_19", "mlx5_36"},
		{"G", "mlx5_282", "mlx5_299"},
		{"pgup", "mlx5_281", "mlx5_298"},
		{"g", "mlx5_0", "mlx5_17"},
	} {
		if step.key != "" {
			s.press(step.key, "")
		}
		rows := names(s)
		if len(rows) != 18 || rows[0] != step.first || rows[len(rows)-1] != step.last {
			t.Errorf("after %q the rows are %q, want %s to %s", step.key, rows, step.first, step.last)
		}
	}
	s.press("G", "")
	s.resize(80, 10)
	if rows := names(s); rows[len(rows)-1] != "mlx5_299" {
		t.Errorf("the row under the cursor is out of sight in a smaller terminal: %q", rows)
	}
}

// TestSizes wants a terminal of any size to be filled and not more.
func TestSizes(t *testing.T) {
	t.Parallel()
	f := node(t)
	for _, keys := range [][]string{nil, {"p"}, {"?"}, {"?", "?"}, {"/"}} {
		for width := 1; width < 250; width += 7 {
			for height := 1; height < 60; height += 9 {
				checkSize(t, screenOf(t, f, width, height, keys...).String(), width, height)
			}
		}
	}
}

// TestOrder wants what is not known to be last both ways.
func TestOrder(t *testing.T) {
	t.Parallel()
	for _, isReverse := range []bool{false, true} {
		rows := node(t).Devices
		order(rows, "rx", isReverse)
		if last := rows[len(rows)-1].Name; last != "mlx5_7" {
			t.Errorf("reversed %t: the last row is %s, want mlx5_7, whose rate is not known", isReverse, last)
		}
		first := map[bool]string{false: "mlx5_2", true: "mlx5_5"}[isReverse]
		if rows[0].Name != first {
			t.Errorf("reversed %t: the first row is %s, want %s", isReverse, rows[0].Name, first)
		}
	}
}

// TestFreeze wants nothing to move until it goes on.
func TestFreeze(t *testing.T) {
	t.Parallel()
	first, second := frameOf(t, readFile(t, "node-0s.prom")), node(t)
	s := screenOf(t, first, 80, 24, "f")
	frozen := s.String()
	s.show(second)
	if s.String() != frozen {
		t.Error("a new frame shows on a frozen screen")
	}
	s.press("f", "")
	if got, want := s.String(), screenOf(t, second, 80, 24).String(); got != want {
		t.Errorf("after going on there is\n%s\nwant\n%s", got, want)
	}
}

// TestAway wants the error to be told, the rows to stay, and both to end.
func TestAway(t *testing.T) {
	t.Parallel()
	s := screenOf(t, nil, 80, 24)
	s.since = start.Add(-13 * time.Second) // the first question
	s.fail(errors.New("connection refused"), start)
	if text := s.String(); !strings.Contains(text, "AWAY for 13s, trying again: connection refused") {
		t.Errorf("before the first answer there is\n%s", text)
	}
	s.show(node(t))
	if text := s.String(); strings.Contains(text, "AWAY") {
		t.Errorf("after an answer there is\n%s", text)
	}
	s.fail(errors.New("connection refused"), start.Add(20*time.Second))
	s.fail(errors.New("no route\x1b[2J to host"), start.Add(32*time.Second))
	text := s.String()
	if !strings.Contains(text, "AWAY for 22s, trying again: no route?[2J to host") || !strings.Contains(text, "mlx5_3") {
		t.Errorf("after two errors there is\n%s", text)
	}
}

// TestEmptiness wants to know why there are no rows, in the words of who told
// it, and no keys where nobody can press any.
func TestEmptiness(t *testing.T) {
	t.Parallel()
	for _, tt := range []struct {
		isPrinted, isLocal bool
		view               View
		filter             string
		want               string
	}{
		{true, false, Devices, "zzz", "nothing here has zzz"},
		{false, false, Devices, "zzz", "nothing here has zzz; esc clears the filter"},
		{true, true, Devices, "", "there are no RDMA devices, or they cannot be read; railhead check says why"},
		{true, false, Devices, "", "there are no RDMA devices, or the agent could not read them; railhead check says why"},
		{false, true, Pods, "", "no pod uses RDMA here"},
		{false, false, Workloads, "", "no pod uses RDMA here, or the agent does not know of pods"},
	} {
		s := newScreen("", newStyle(false), Choice{View: tt.view, Filter: tt.filter})
		s.frame, s.isPrinted = &Frame{isLocal: tt.isLocal}, tt.isPrinted
		if got := s.emptiness(); got != tt.want {
			t.Errorf("%+v: it says %q", tt, got)
		}
	}
}

// TestColor wants colours only where they are wanted, and the same text.
func TestColor(t *testing.T) {
	t.Parallel()
	colored := newScreen("agent "+DefaultAgent, newStyle(true), firstChoice)
	colored.show(node(t))
	plain := screenOf(t, node(t), 80, 24)
	if strings.Contains(plain.String(), "\x1b") {
		t.Error("there is an escape sequence without colour")
	}
	if !strings.Contains(colored.String(), "\x1b[1;31mDOWN") && !strings.Contains(colored.String(), "\x1b[7m>!mlx5_5") {
		t.Errorf("nothing is coloured:\n%q", colored.String())
	}
	checkSize(t, colored.String(), 80, 24)
}

// TestHostileNames has names that a pod may have chosen.
func TestHostileNames(t *testing.T) {
	t.Parallel()
	text := `rdma_pod_info{pod_namespace="a",pod_name="b` + "\x1b[2J\u202e" + `"} 1` + "\n" +
		`rdma_port_info{device="mlx5\n0",port="1",netdev="` + "\x07" + `"} 1` + "\n"
	for _, key := range []string{"d", "p", "w"} {
		for _, r := range screenOf(t, frameOf(t, text), 160, 24, key).String() {
			if r != '\n' && (r < ' ' || r == '\u202e') {
				t.Errorf("view %s prints %q", key, r)
			}
		}
	}
}
