package plugin

import (
	"encoding/json"
	"fmt"
	"net"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"golang.org/x/tools/txtar"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/attach"
	"railhead/internal/golden"
	"railhead/internal/npwg"
)

// input is a network of one configuration, as rail 2.
func input(t *testing.T, config string) Input {
	t.Helper()
	s := npwg.Selected{Namespace: "ai", Name: "rail", Interface: "net3"}
	nad := &cniv1.NetworkAttachmentDefinition{
		ObjectMeta: metav1.ObjectMeta{Namespace: "ai", Name: "rail"}, Spec: cniv1.NetworkAttachmentDefinitionSpec{Config: config},
	}
	chain, err := npwg.ChainOf(s, nad, nil)
	if err != nil {
		t.Fatal(err)
	}
	return Input{Chain: chain, Selected: s, Rail: 2}
}

// askedMAC is what the pod asks for.
const askedMAC = "02:00:00:00:00:01"

func asking(in Input) Input {
	in.Selected.Requests = map[string]json.RawMessage{npwg.CapabilityMAC: json.RawMessage(`"` + askedMAC + `"`)}
	return in
}

// said is the golden text of a case.
func said(in Input) string {
	made, err := Interface(in)
	if err != nil {
		return "  error: " + strings.ReplaceAll(err.Error(), "\n", "\n  error: ") + "\n"
	}
	parts, _ := Split(in.Chain)
	return render(made) + fmt.Sprintf("  parts: main %d, native %v, after %v\n", parts.Main, parts.Native, parts.After)
}

// TestInterfaces reads the cases of testdata, "name" being a configuration and
// "name.golden" what becomes of it.
func TestInterfaces(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/*.txtar")
	if err != nil || len(files) == 0 {
		t.Fatalf("no cases: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(file)
			if err != nil {
				t.Fatal(err)
			}
			want := map[string]string{}
			var written []txtar.File
			for _, f := range archive.Files {
				want[f.Name] = string(f.Data)
			}
			for _, f := range archive.Files {
				if strings.HasSuffix(f.Name, ".golden") {
					continue
				}
				got := said(input(t, string(f.Data)))
				written = append(written, f, txtar.File{Name: f.Name + ".golden", Data: []byte(got)})
				if diff := cmp.Diff(want[f.Name+".golden"], got); diff != "" && !golden.Update() {
					t.Errorf("%s (-want +got), go test -update accepts it:\n%s", f.Name, diff)
				}
			}
			if golden.Update() {
				archive.Files = written
				if err := os.WriteFile(file, txtar.Format(archive), 0o600); err != nil {
					t.Fatal(err)
				}
			}
		})
	}
}

// chainsOfNADs are the configurations that the controller makes, by case.
func chainsOfNADs(tb testing.TB) (names []string, configs map[string]string) {
	tb.Helper()
	files, err := filepath.Glob("../../policy/nad/testdata/*.txtar")
	if err != nil || len(files) == 0 {
		tb.Fatalf("no NetworkAttachmentDefinitions: %v", err)
	}
	configs = map[string]string{}
	for _, file := range files {
		archive, err := txtar.ParseFile(file)
		if err != nil {
			tb.Fatal(err)
		}
		for _, f := range archive.Files {
			_, config, ok := strings.Cut(string(f.Data), "\n{\n")
			if name, isNAD := strings.CutSuffix(f.Name, ".nad"); isNAD && ok {
				name = strings.TrimSuffix(filepath.Base(file), ".txtar") + "/" + name
				names, configs[name] = append(names, name), "{"+config
			}
		}
	}
	return names, configs
}

// TestNADs reads every NetworkAttachmentDefinition that the controller makes: all
// of macvlan and ipvlan are taken, and of the others those that can be.
func TestNADs(t *testing.T) {
	t.Parallel()
	names, configs := chainsOfNADs(t)
	var b strings.Builder
	for _, name := range names {
		in := input(t, configs[name])
		if strings.HasPrefix(name, "macvlan/") || strings.HasPrefix(name, "ipvlan/") {
			if _, err := Interface(in); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		fmt.Fprintf(&b, "%s\n%s", name, said(in))
	}
	golden.Equal(t, "testdata/nad.golden", b.String())
}

func TestWishesOfThePod(t *testing.T) {
	t.Parallel()
	const (
		argued, configured = "02:00:00:00:00:02", "02:00:00:00:00:03"
		macvlan            = `{"type":"macvlan","master":"p0","mac":"` + configured + `"}`
		both               = `{"plugins":[` + macvlan + `,{"type":"tuning","mac":"02:00:00:00:00:04"}]}`
		device             = `{"type":"host-device"}`
	)
	argue := func(in Input) Input {
		in.Selected.CNIArgs = map[string]json.RawMessage{"mac": json.RawMessage(`"` + argued + `"`), "other": json.RawMessage(`1`)}
		return in
	}
	allocated := func(in Input) Input {
		in.DeviceID = "0000:3B:00.2"
		return in
	}
	declared := `{"type":"macvlan","master":"p0","capabilities":{"mac":false},"mac":"` + configured + `"}`
	for name, tt := range map[string]struct {
		in   Input
		mac  string
		pci  string
		fail string
	}{
		"configured":                {in: input(t, macvlan), mac: configured},
		"argued":                    {in: argue(input(t, macvlan)), mac: argued},
		"asked":                     {in: asking(argue(input(t, macvlan))), mac: askedMAC},
		"declared not to":           {in: asking(input(t, declared)), mac: configured},
		"tuned last":                {in: input(t, both), mac: "02:00:00:00:00:04"},
		"asked of both":             {in: asking(input(t, both)), mac: askedMAC},
		"allocated":                 {in: allocated(input(t, device)), pci: "0000:3b:00.2"},
		"allocated, of no use":      {in: allocated(input(t, macvlan)), mac: configured},
		"allocated and named":       {in: allocated(input(t, `{"type":"host-device","device":"eth7"}`)), fail: `network ai/rail: plugin host-device: names its device by device and pciBusID: want one of`},
		"ipvlan has its master's":   {in: argue(input(t, `{"type":"ipvlan","master":"p0"}`)), fail: "network ai/rail: MAC address 02:00:00:00:00:02: an interface of type ipvlan has that of its master: want none"},
		"not of the shared devices": {in: asking(input(t, `{"plugins":[{"type":"ipvlan","master":"p0"},{"type":"tuning"}]}`)), fail: "MAC address 02:00:00:00:00:01: an interface of type ipvlan has"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			made, err := Interface(tt.in)
			if tt.fail != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fail) {
					t.Fatalf("got %v, want %q", err, tt.fail)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if got := made.MAC.String(); got != tt.mac || made.Link.Device.PCIAddress != tt.pci {
				t.Errorf("MAC address %s of device %q, want %s of %q", got, made.Link.Device.PCIAddress, tt.mac, tt.pci)
			}
		})
	}
}

// TestCoordinator merges cluster, network and pod.
func TestCoordinator(t *testing.T) {
	t.Parallel()
	in := input(t, `{"plugins":[{"type":"macvlan","master":"p0"},{"type":"coordinator","podRPFilter":2}]}`)
	in.Cluster = v2beta1.CoordinatorSpec{TunePodRoutes: new(false), TxQueueLen: new(2000)}
	in.Status = v2beta1.CoordinatorStatus{Phase: v2beta1.PhaseSynced, OverlayPodCIDR: []string{"10.233.64.0/18"}}
	in.DefaultRouteNIC = "net3"
	made, err := Interface(in)
	if err != nil {
		t.Fatal(err)
	}
	if c := made.Coordinator; c == nil || c.PodRPFilter != 2 || c.TunePodRoutes || c.TxQueueLen != 2000 || c.DefaultRouteNIC != "net3" || len(c.PodCIDRs) != 1 {
		t.Errorf("%+v", c)
	}
	in.Cluster.Mode = new("none")
	if _, err := Interface(in); err == nil || !strings.Contains(err.Error(), "network ai/rail: plugin coordinator: SpiderCoordinator default: ") {
		t.Errorf("got %v", err)
	}
}

// TestDefaultNetwork is another's, and has its coordinator.
func TestDefaultNetwork(t *testing.T) {
	t.Parallel()
	in := input(t, `{"plugins":[{"type":"calico"},{"type":"tuning","mtu":1400},{"type":"portmap"},{"type":"coordinator"}]}`)
	in.Selected = npwg.Selected{Interface: "eth0", Default: true}
	made, err := Interface(in)
	if err != nil {
		t.Fatal(err)
	}
	if !made.Foreign || !made.IsDefaultNetwork || made.Link.Kind != attach.Foreign || made.Coordinator == nil || made.Tuning.MTU != 0 || made.Name != "eth0" {
		t.Errorf("%+v", made)
	}
	parts, err := Split(in.Chain)
	if diff := cmp.Diff(Parts{Main: -1, Native: []int{3}, After: []int{0, 1, 2}}, parts); diff != "" || err != nil {
		t.Errorf("%v -want +got:\n%s", err, diff)
	}
}

func TestIPAMOf(t *testing.T) {
	t.Parallel()
	for config, want := range map[string]IPAM{
		`{"type":"macvlan"}`:                              {},
		`{"type":"macvlan","ipam":null}`:                  {},
		`{"type":"macvlan","ipam":{}}`:                    {},
		`{"type":"macvlan","ipam":{"type":"spiderpool"}}`: {Type: "spiderpool", Native: true},
		`{"type":"macvlan","ipam":{"type":"host-local"}}`: {Type: "host-local"},
	} {
		if got, err := IPAMOf(npwg.Plugin{Type: "macvlan", Config: json.RawMessage(config)}); err != nil || got != want {
			t.Errorf("%s: %+v, %v", config, got, err)
		}
	}
	if _, err := IPAMOf(npwg.Plugin{Type: "macvlan", Config: json.RawMessage(`{"ipam":[]}`)}); err == nil || !strings.Contains(err.Error(), "plugin macvlan: field ipam: is a JSON array: want a JSON object") {
		t.Errorf("got %v", err)
	}
}

// FuzzInterface: whatever a network says, an interface that is taken has one kind
// and what that needs, no name that Linux refuses, and is the same twice; an
// error names the network.
func FuzzInterface(f *testing.F) {
	_, configs := chainsOfNADs(f)
	for _, config := range configs {
		f.Add(config, "02:00:00:00:00:01", "0000:3b:00.2")
	}
	f.Add(`{"plugins":[{"type":"host-device","hwaddr":"02:00:00:00:00:01"},{"type":"tuning","sysctl":{"net.core.somaxconn":"5"},"promisc":true,"allmulti":false,"txQLen":7}]}`, "", "")
	f.Fuzz(func(t *testing.T, config, mac, device string) {
		s := npwg.Selected{Namespace: "ai", Name: "rail", Interface: "net3", At: "at"}
		if _, err := net.ParseMAC(mac); err == nil {
			s.Requests = map[string]json.RawMessage{npwg.CapabilityMAC: json.RawMessage(`"` + mac + `"`)}
		}
		nad := &cniv1.NetworkAttachmentDefinition{Spec: cniv1.NetworkAttachmentDefinitionSpec{Config: config}}
		nad.Name = "rail"
		chain, err := npwg.ChainOf(s, nad, nil)
		if err != nil {
			return
		}
		in := Input{Chain: chain, Selected: s, Rail: 2, DeviceID: device}
		made, err := Interface(in)
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\nnetwork ") {
				if !strings.HasPrefix(line, "ai/rail: ") && !strings.HasPrefix(line, "network ai/rail: ") {
					t.Fatalf("%q does not name the network", line)
				}
			}
			return
		}
		again, err := Interface(in)
		if diff := cmp.Diff(render(made), render(again)); err != nil || diff != "" {
			t.Fatalf("a second time: %v %s", err, diff)
		}
		checkMade(t, in, made)
	})
}

func checkMade(t *testing.T, in Input, made attach.Interface) {
	t.Helper()
	parts, err := Split(in.Chain)
	if err != nil || len(parts.Native)+len(parts.After) != len(in.Chain.Plugins) {
		t.Fatalf("parts %+v of %d plugins: %v", parts, len(in.Chain.Plugins), err)
	}
	p, d := made.Link.Parent, made.Link.Device
	switch made.Link.Kind {
	case attach.Foreign:
		if !made.Foreign || parts.Main != -1 {
			t.Fatalf("of another: %+v", made)
		}
		return
	case attach.HostDevice:
		if p.Name != "" || cmp.Equal(d, attach.Device{}) {
			t.Fatalf("device %+v on %+v", d, p)
		}
	default:
		if checkNetdev("", p.Name) != nil || !cmp.Equal(d, attach.Device{}) || len(made.Masters) == 0 {
			t.Fatalf("parent %+v, device %+v, masters %v", p, d, made.Masters)
		}
		if (p.Bond != nil || p.VLANID != 0) != (len(p.Members) > 0) || p.Bond != nil && len(p.Members) < 2 {
			t.Fatalf("parent %+v", p)
		}
	}
	if made.Foreign || made.SharesMAC && made.MAC != nil || made.SharesMAC != (made.Link.Kind == attach.IPVLAN || made.Link.Mode == "passthru") {
		t.Fatalf("%+v", made)
	}
}
