package simulation

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
)

// base is a scenario that is right, with what the tests below make wrong.
const base = `
node: gpu-1
cards:
- {name: mlx5_0, pci: "0000:18:00.0", vfs: 2}
- {name: mlx5_1, pci: "0000:2a:00.0"}
- {name: rxe0, driver: rxe, netdev: eth1}
pods:
- {namespace: ml, name: train, devices: [mlx5_0/0], traffic: {receive: 1G}}
- {namespace: ml, name: load, devices: [mlx5_1], use: shared, hostNetwork: true}
`

func TestParseRefuses(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, old, new, want string }{
		{"no YAML", "node: gpu-1", "node: [", "yaml: "},
		{"unknown field", "vfs: 2", "vf: 2", `unknown field "cards[0].vf"`},
		{"unknown field of an embedded struct", "name: train,", "name: train, till: 3s,", `unknown field "pods[0].till"`},
		{"twice", "node: gpu-1", "node: a\nnode: b", `already set in map`},
		{"node", "node: gpu-1", "node: GPU_1", `node: "GPU_1", want 1 to 62 small letters, digits, - and .`},
		{"kernel", "node: gpu-1", "node: g\nkernel: newest", `kernel: "newest", want a release such as 6.12.48`},
		{"mode", "node: gpu-1", "node: g\nnetnsMode: own", `netnsMode: "own", want one of exclusive, shared`},
		{"cgroup", "node: gpu-1", "node: g\ncgroup: {version: 3}", `cgroup.version: "3", want a number from 1 to 2`},
		{"no cards", base[strings.Index(base, "cards:"):], "cards: []", `cards: "0", want 1 to 64`},
		{"driver", "driver: rxe", "driver: mlx6", `cards[2].driver: "mlx6", want one of bnxt_re, efa, ionic, irdma, mlx5, rxe`},
		{"address", "0000:18:00.0", "18:00.0", `cards[0].pci: "18:00.0", want an address such as 0000:18:00.0, with a bus from 04`},
		{"address of a VF's PF", "0000:18:00.0", "0000:18:02.0", `cards[0].pci: "0000:18:02.0", want one that ends in :00.0 or :00.1, as it has VFs`},
		{"address twice", "0000:2a:00.0", "0000:18:00.0", `cards[1].pci: "0000:18:00.0", want another than that of cards[0]`},
		{"address of software", "driver: rxe", `driver: rxe, pci: "0000:20:00.0"`, `cards[2].pci: "0000:20:00.0", want none, as rxe is no hardware`},
		{"too many VFs", "vfs: 2", "vfs: 64", `cards[0].vfs: "64", want a number from 0 to 63`},
		{"VFs of software", "driver: rxe", "driver: rxe, vfs: 1", `cards[2].vfs: "1", want 0, as rxe has none here`},
		{"speed", "vfs: 2", "vfs: 2, speed: 300", `cards[0].speed: "300", want one of [10 25 40 50 100 200 400 800]`},
		{"InfiniBand", "driver: rxe", "driver: rxe, linkLayer: InfiniBand", `cards[2].linkLayer: "InfiniBand", want RoCE, which is all that rxe has`},
		{"priority", "vfs: 2", "vfs: 2, pfc: [3, 8]", `cards[0].pfc[1]: "8", want a number from 0 to 7`},
		{"IP address", "vfs: 2", "vfs: 2, address: 10.0.0.1", `cards[0].address: "10.0.0.1", want an IPv4 address with its length, such as 172.16.0.5/24`},
		{"QP counters", "driver: rxe", "driver: rxe, qpCounters: pid", `cards[2].qpCounters: "pid", want none, as rxe has no others`},
		{"quantity", "receive: 1G", "receive: 1 GB", `pods[0].traffic.receive: "1 GB", want a number, which may end in k, M, G, T, Ki, Mi, Gi or Ti`},
		{"negative quantity", "receive: 1G", "receive: -1", `pods[0].traffic.receive: "-1", want a number`},
		{"duration", "name: train,", "name: train, from: soon,", `pods[0].from: "soon", want a duration such as 90s`},
		{"pattern", "receive: 1G", "pattern: random", `pods[0].traffic.pattern: "random", want one of steady, training, wave`},
		{"jitter", "receive: 1G", "jitter: 1", `pods[0].traffic.jitter: "1", want a number from 0 to 0.9`},
		{"again before it ends", "name: train,", "name: train, for: 2s, every: 1s,", `pods[0].for: "2s", want more than 0s and at most every, 1s`},
		{"UID", "name: train,", "name: train, uid: '7',", `pods[0].uid: "7", want a UID in the form of a UUID, in small letters`},
		{"device", "mlx5_0/0", "mlx5_0/2", `pods[0].devices[0]: "mlx5_0/2", want one of mlx5_0, mlx5_0/0, mlx5_0/1, mlx5_1, rxe0`},
		{"device twice", "mlx5_0/0", "mlx5_0/0, mlx5_0/0", `pods[0].devices[1]: "mlx5_0/0", want each device once`},
		{
			"device of two", "name: load, devices: [mlx5_1], use: shared, hostNetwork: true", "name: load, devices: [mlx5_0/0]",
			`pods[1].devices[0]: "mlx5_0/0", want a device that pods[0] does not use`,
		},
		{"pod twice", "name: load", "name: train", `pods[1].name: "ml/train", want another than that of pods[0]`},
		{"alone in the host's network", "use: shared, ", "", `pods[1].use: "exclusive", want shared, as nothing moves into the host's network`},
		{
			"shared from afar", ", hostNetwork: true", "",
			`pods[1].use: "shared", want exclusive, or hostNetwork: devices of the host are not seen in pods while netnsMode is exclusive`,
		},
		{"owner", "name: train,", "name: train, owners: [{apiVersion: v1, kind: job, name: x}],", `pods[0].owners[0].kind: "job", want a kind such as ReplicaSet`},
		{
			"counter", "pods:", "counters: [{devices: [rxe0], counter: out_of_sequence}]\npods:",
			`counters[0].counter: "out_of_sequence", want a counter of rxe0, which are ack_deferred, `,
		},
		{"counter of a PF", "pods:", "counters: [{devices: [mlx5_0/1], counter: np_cnp_sent}]\npods:", `counters[0].counter: "np_cnp_sent", want a counter of mlx5_0/1`},
		{"no devices", "pods:", "counters: [{devices: [], counter: x}]\npods:", `counters[0].devices: "", want one of mlx5_0, `},
		{
			"congestion without counters", "pods:", "congestion: [{devices: [rxe0], receive: 0.1}]\npods:",
			`congestion[0].receive: "0.1", want 0, as rxe of rxe0 does not count it`,
		},
		{
			"congestion of a VF", "pods:", "congestion: [{devices: [mlx5_0/0], receive: 0.1}]\npods:",
			`congestion[0].devices: "mlx5_0/0", want a card, as a VF does not see the port`,
		},
		{
			"event", "pods:", "events: [{do: explode, devices: [mlx5_0]}]\npods:",
			`events[0].do: "explode", want one of down, flap, degrade, stall, refuse, block, full`,
		},
		{
			"event of a VF", "pods:", "events: [{do: down, devices: [mlx5_0/1]}]\npods:",
			`events[0].devices: "mlx5_0/1", want a card, as it is the port to which this happens`,
		},
		{"endless flaps", "pods:", "events: [{do: flap, devices: [mlx5_0]}]\npods:", `events[0].for: "0s", want more than 0s`},
		{
			"errno", "pods:", "events: [{do: refuse, devices: [mlx5_0], errno: EWHAT, request: port}]\npods:",
			`events[0].errno: "EWHAT", want one of EAGAIN, EBUSY, `,
		},
		{
			"request", "pods:", "events: [{do: block, devices: [mlx5_0], delay: 1s, request: all}]\npods:",
			`events[0].request: "all", want one of ethtool, port, resources, statistics`,
		},
		{"full", "pods:", "events: [{do: full, devices: [mlx5_0], counter: tea}]\npods:", `events[0].counter: "tea", want a counter of mlx5_0`},
		{"resource", "pods:", "kubernetes: {forbidden: [Jobs]}\npods:", `want a resource such as jobs.batch or pytorchjobs.kubeflow.org`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(base, tt.old) {
				t.Fatalf("%q is not in the scenario", tt.old)
			}
			_, err := parse([]byte(strings.Replace(base, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestParseRefusesReal changes a scenario of a real node so that it is wrong.
func TestParseRefusesReal(t *testing.T) {
	t.Parallel()
	tests := []struct{ name, old, new, want string }{
		{"name", "realNode: true", "realNode: true\nnode: n1", `node: "n1", want none, as the node is a real one`},
		{"kernel", "realNode: true", "realNode: true\nkernel: 6.12.1", `kernel: "6.12.1", want none`},
		{"cgroup", "realNode: true", "realNode: true\ncgroup: {version: 1}", `cgroup: "{1 }", want none`},
		{"Kubernetes", "realNode: true", "realNode: true\nkubernetes: {absent: [jobs.batch]}", `kubernetes.absent: "[jobs.batch]", want none`},
		{"mode", "realNode: true", "realNode: true\nnetnsMode: exclusive", `netnsMode: "exclusive", want shared, as nothing that is simulated moves`},
		{"no netdev", ", netdev: enp13s0f0np0", "", `cards[2].netdev: "", want the name of the netdev that the card stands on`},
		{"netdev without an address", "enp13s0f0np0", "ens1", `cards[2].pci: "", want an address such as 0000:18:00.0`},
		{"MTU", "speed: 200", "mtu: 9000", `cards[1].mtu: "9000", want none, as that of the real netdev is taken`},
		{"IP address", "speed: 200", "address: 10.0.0.1/24", `cards[1].address: "10.0.0.1/24", want none`},
		{"VFs", "speed: 200", "vfs: 1", `cards[1].vfs: "1", want 0`},
		{"GPU", "speed: 200", "gpu: true", `cards[1].gpu: "true", want false`},
		{"InfiniBand", "speed: 200", "linkLayer: InfiniBand", `cards[1].linkLayer: "InfiniBand", want RoCE, as the card stands on an Ethernet netdev`},
		{"without a netdev", "speed: 200", "driver: efa", `cards[1].driver: "efa", want one whose cards have netdevs`},
		{"no match", `match: {HOSTNAME: "llama-*"}, `, "", `pods[0].match: "", want variables of the environment`},
		{"variable", "HOSTNAME: node1", "'HOST NAME': x", `pods[1].match: "HOST NAME", want the name of a variable`},
		{"bad pattern", "HOSTNAME: node1", "HOSTNAME: '['", `pods[1].match.HOSTNAME: "[", want a pattern in which`},
		{"pod", "processes: 2", "name: x, namespace: z", `pods[0].namespace: "z", want none, as the pods are those of a real node`},
		{"times", "processes: 2", "from: 3s", `pods[0].from: "3s", want none`},
		{"owners", "processes: 2", "owners: [{apiVersion: v1, kind: Job, name: x}]", `pods[0].owners: `},
		{"alone", "processes: 2", "use: exclusive", `pods[0].use: "exclusive", want shared`},
		{"match of an invented node", onReal, base + "- {match: {A: b}, namespace: a, name: b}", `pods[2].match: "map[A:b]", want none`},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			if !strings.Contains(onReal, tt.old) {
				t.Fatalf("%q is not in the scenario", tt.old)
			}
			_, err := parse([]byte(strings.Replace(onReal, tt.old, tt.new, 1)))
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error %v, want %q in it", err, tt.want)
			}
		})
	}
}

// TestParseJoins checks that one mistake does not hide another.
func TestParseJoins(t *testing.T) {
	t.Parallel()
	_, err := parse([]byte(strings.NewReplacer("gpu-1", "GPU", "vfs: 2", "vfs: -1").Replace(base)))
	for _, want := range []string{"node:", "cards[0].vfs:", "pods[0].devices[0]:"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want %q in it", err, want)
		}
	}
}

func TestParseCompletes(t *testing.T) {
	t.Parallel()
	s, err := parse([]byte(base))
	if err != nil {
		t.Fatal(err)
	}
	got := s.Cards[1]
	one := 1
	want := Card{
		Name: "mlx5_1", Driver: "mlx5", PCI: "0000:2a:00.0", Rail: &one, LinkLayer: linkRoCE, Speed: 400, Lanes: 4, MTU: 4200,
		Firmware: "28.39.1002", PFC: []int{3}, QPCounters: bindNone,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("card (-want +got):\n%s", diff)
	}
}

func TestLoadNamesTheFile(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "wrong.yaml")
	if err := os.WriteFile(file, []byte("nodes: x"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := Load(file); err == nil || !strings.HasPrefix(err.Error(), file+": ") {
		t.Errorf("error %v, want one that begins with the file", err)
	}
	if _, err := Load(file + "x"); !os.IsNotExist(err) {
		t.Errorf("error %v, want one of a file that is not there", err)
	}
}

func scenarioFiles(tb testing.TB) []string {
	tb.Helper()
	files, err := filepath.Glob("../../scenarios/*.yaml")
	if err != nil || len(files) == 0 {
		tb.Fatalf("scenarios: %v, %v", files, err)
	}
	return files
}

// FuzzParse checks that a scenario that is taken is the same when it is written
// and read again.
func FuzzParse(f *testing.F) {
	f.Add([]byte(base))
	f.Add([]byte(onReal))
	f.Add([]byte(base + `- {namespace: ml, name: x, devices: [mlx5_1], hostNetwork: true, use: shared, resource: "\x85", annotations: {"<<": "\x7f\ufffe"}}`))
	for _, file := range scenarioFiles(f) {
		text, err := os.ReadFile(file)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(text)
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		first, err := parse(text)
		if err != nil {
			return
		}
		written, err := json.Marshal(first)
		if err != nil {
			t.Fatal(err)
		}
		second, err := parse(escaped(written))
		if err != nil {
			t.Fatalf("%s: %v", written, err)
		}
		if diff := cmp.Diff(first, second, cmp.AllowUnexported(Duration{}, Quantity{}), cmpopts.EquateEmpty()); diff != "" {
			t.Errorf("written and read again (-first +second):\n%s", diff)
		}
	})
}

// escaped returns JSON with \u escapes: some of Unicode YAML has no other way.
func escaped(written []byte) []byte {
	var b []byte
	for _, r := range string(written) {
		if r < 0x7f || r > 0xffff {
			b = utf8.AppendRune(b, r)
		} else {
			b = fmt.Appendf(b, `\u%04x`, r)
		}
	}
	return b
}
