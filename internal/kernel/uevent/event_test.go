package uevent

import (
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// message joins the parts of a message as the kernel does.
func message(parts ...string) []byte {
	return []byte(strings.Join(parts, "\x00") + "\x00")
}

func TestParse(t *testing.T) {
	t.Parallel()
	tests := []struct {
		name string
		msg  []byte
		want Event
		err  string
	}{
		{
			name: "netdev",
			msg: message("add@/devices/virtual/net/va", "ACTION=add", "DEVPATH=/devices/virtual/net/va",
				"SUBSYSTEM=net", "INTERFACE=va", "IFINDEX=7", "SEQNUM=3147"),
			want: Event{
				Action: "add", DevPath: "/devices/virtual/net/va", Subsystem: "net", Seq: 3147,
				Vars: map[string]string{
					"ACTION": "add", "DEVPATH": "/devices/virtual/net/va", "SUBSYSTEM": "net",
					"INTERFACE": "va", "IFINDEX": "7", "SEQNUM": "3147",
				},
			},
		},
		{
			name: "RDMA device",
			msg: message("remove@/devices/pci0000:16/0000:16:01.0/0000:17:00.0/infiniband/mlx5_0", "ACTION=remove",
				"SUBSYSTEM=infiniband", "NAME=mlx5_0", "SEQNUM=18446744073709551615"),
			want: Event{
				Action: "remove", DevPath: "/devices/pci0000:16/0000:16:01.0/0000:17:00.0/infiniband/mlx5_0",
				Subsystem: "infiniband", Seq: 1<<64 - 1,
				Vars: map[string]string{"ACTION": "remove", "SUBSYSTEM": "infiniband", "NAME": "mlx5_0", "SEQNUM": "18446744073709551615"},
			},
		},
		{
			name: "no subsystem, a value with =, an empty value",
			msg:  message("change@/kernel/slab", "MODALIAS=a=b=c", "EMPTY=", "SEQNUM=1"),
			want: Event{Action: "change", DevPath: "/kernel/slab", Seq: 1, Vars: map[string]string{"MODALIAS": "a=b=c", "EMPTY": "", "SEQNUM": "1"}},
		},
		{
			name: "a path with @, no NUL at the end, parts that are no variables",
			msg:  []byte("bind@/devices/i2c@1\x00novalue\x00=noname\x00\x00SEQNUM=2"),
			want: Event{Action: "bind", DevPath: "/devices/i2c@1", Seq: 2, Vars: map[string]string{"SEQNUM": "2"}},
		},
		{name: "udevd", msg: append([]byte("libudev\x00\xfe\xed\xca\xfe"), message("add@/x", "SEQNUM=1")...), err: "udevd"},
		{name: "empty", err: "action@devpath"},
		{name: "no action", msg: message("@/devices/x", "SEQNUM=1"), err: "action@devpath"},
		{name: "no device", msg: message("add@", "SEQNUM=1"), err: "action@devpath"},
		{name: "no header", msg: message("ACTION=add", "SEQNUM=1"), err: "action@devpath"},
		{name: "no number", msg: message("add@/devices/x"), err: "SEQNUM"},
		{name: "no number but a word", msg: message("add@/devices/x", "SEQNUM=-1"), err: `SEQNUM "-1", want a number`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			got, err := parse(tt.msg)
			if tt.err != "" {
				if err == nil || !strings.Contains(err.Error(), tt.err) {
					t.Errorf("error %v, want %q in it", err, tt.err)
				}
			} else if err != nil {
				t.Error(err)
			}
			if diff := cmp.Diff(tt.want, got); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// Either an error or an event, which encodes to a message of the same event.
func FuzzParse(f *testing.F) {
	f.Add(message("add@/devices/virtual/net/va", "ACTION=add", "SUBSYSTEM=net", "INTERFACE=va", "SEQNUM=3147"))
	f.Add(message("change@/a@b", "A=b=c", "=", "D", "SEQNUM=0"))
	f.Add([]byte("libudev\x00add@/x\x00SEQNUM=1\x00"))
	f.Add([]byte("add@\x00"))
	f.Fuzz(func(t *testing.T, msg []byte) {
		e, err := parse(msg)
		if err != nil {
			if diff := cmp.Diff(Event{}, e); diff != "" {
				t.Errorf("error %v, and an event: %s", err, diff)
			}
			return
		}
		if e.Action == "" || e.DevPath == "" || e.Subsystem != e.Vars["SUBSYSTEM"] {
			t.Errorf("incomplete: %+v", e)
		}
		parts := []string{e.Action + "@" + e.DevPath}
		for _, name := range slices.Sorted(maps.Keys(e.Vars)) {
			parts = append(parts, name+"="+e.Vars[name])
		}
		again, err := parse(message(parts...))
		if diff := cmp.Diff(e, again); diff != "" || err != nil {
			t.Errorf("does not come back: %v (-want +got):\n%s", err, diff)
		}
	})
}

func BenchmarkParse(b *testing.B) {
	msg := message("add@/devices/pci0000:16/0000:16:01.0/0000:17:00.0/net/ens1f0np0/queues/rx-12", "ACTION=add",
		"DEVPATH=/devices/pci0000:16/0000:16:01.0/0000:17:00.0/net/ens1f0np0/queues/rx-12", "SUBSYSTEM=queues", "SEQNUM=30147")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := parse(msg); err != nil {
			b.Fatal(err)
		}
	}
}
