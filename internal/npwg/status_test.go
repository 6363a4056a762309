package npwg

import (
	"encoding/json"
	"testing"

	types100 "github.com/containernetworking/cni/pkg/types/100"
	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/golden"
)

// result is a CNI result from its JSON.
func result(t *testing.T, text string) *types100.Result {
	t.Helper()
	r, err := types100.NewResult([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got, err := types100.GetResult(r)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

// TestStatus has section 4.1.3, byte by byte as the client writes it.
func TestStatus(t *testing.T) {
	t.Parallel()
	own := Selected{Interface: "eth0", Default: true}
	rail := func(n string) Selected { return Selected{Namespace: "ai", Name: "rail" + n, Interface: "net" + n} }
	const sandbox = `"sandbox":"/run/netns/x"`
	veth := `{"cniVersion":"1.1.0","interfaces":[{"name":"cali1"},{"name":"eth0","mac":"02:00:00:00:00:01","mtu":1450,` + sandbox + `}],
		"ips":[{"interface":1,"address":"10.244.1.5/32"}]}`
	mlx := DeviceInfo{Type: DevicePCI, Version: DeviceInfoVersion, PCI: &PCIDevice{Address: "0000:3b:00.2", RDMADevice: "mlx5_4"}}
	tests := []struct {
		name     string
		attached []Attached
	}{
		{"rails", []Attached{
			{Selected: own, Network: "k8s-pod-network", Result: result(t, veth)},
			{Selected: rail("1"), Network: "rail1", Device: &mlx, Result: result(t, `{"cniVersion":"1.1.0","interfaces":[{"name":"net1","mac":"02:00:00:00:00:02","mtu":9000,`+sandbox+`}],
				"ips":[{"interface":0,"address":"172.16.11.10/16","gateway":"172.16.11.254"},{"address":"fd00::a/64"}],
				"routes":[{"dst":"0.0.0.0/0","gw":"172.16.11.254"},{"dst":"0.0.0.0/1","gw":"172.16.11.253"},{"dst":"::/0"}],
				"dns":{"nameservers":["10.96.0.10"],"domain":"x","search":["a","b"],"options":["ndots:5"]}}`)},
			{Selected: rail("1"), Network: "rail1", Result: result(t, `{"cniVersion":"1.1.0","interfaces":[{"name":"net2",`+sandbox+`}]}`)},
		}},
		{"default-by-gateway", []Attached{
			{Selected: Selected{Namespace: "kube-system", Name: "two", Default: true}, Network: "n", Result: result(t, `{"cniVersion":"1.0.0",
				"interfaces":[{"name":"a",`+sandbox+`},{"name":"h"},{"name":"b",`+sandbox+`}],
				"ips":[{"interface":0,"address":"10.1.0.2/24"},{"interface":2,"address":"10.2.0.2/24","gateway":"10.2.0.1"},{"interface":1,"address":"10.3.0.2/24"},{"address":"10.4.0.2/24"}],
				"routes":[{"dst":"0.0.0.0/0","gw":"10.2.0.1"}]}`)},
		}},
		{"no-interfaces", []Attached{
			{Selected: own, Network: "old", Result: result(t, `{"cniVersion":"1.0.0","ips":[{"address":"10.1.0.2/24"}]}`)},
			{Selected: rail("1"), Network: "rail1", Result: result(t, `{"cniVersion":"1.0.0","interfaces":[{"name":"h1"},{"name":"h2"}]}`)},
		}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			t.Parallel()
			text, err := Status(tt.attached)
			checkError(t, err)
			golden.Equal(t, "testdata/status-"+tt.name+".golden", text+"\n")
			list, err := ParseStatus(text)
			checkError(t, err)
			checkOneDefault(t, list)
		})
	}
}

func checkOneDefault(t *testing.T, list []NetworkStatus) {
	t.Helper()
	defaults := 0
	for _, s := range list {
		if s.Default {
			defaults++
		}
	}
	if defaults != 1 {
		t.Errorf("%d entries are the default: want one in %+v", defaults, list)
	}
}

func TestStatusRefused(t *testing.T) {
	t.Parallel()
	_, err := Status(nil)
	checkError(t, err, "0 networks are the pod's default network: want one")
	_, err = Status([]Attached{{Selected: rail0}})
	checkError(t, err, "network ai/rail0 of interface net1 has no CNI result")
	_, err = ParseStatus("{}")
	checkError(t, err, AnnotationStatus)
}

func TestStatusPatch(t *testing.T) {
	t.Parallel()
	body, err := StatusPatch("8d2d", `[{"name":"a<b"}]`)
	checkError(t, err)
	var got struct{ Metadata metav1.ObjectMeta }
	if err := json.Unmarshal(body, &got); err != nil {
		t.Fatal(err)
	}
	want := metav1.ObjectMeta{UID: "8d2d", Annotations: map[string]string{AnnotationStatus: `[{"name":"a<b"}]`}}
	if diff := cmp.Diff(want, got.Metadata); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
	_, err = StatusPatch("", "[]")
	checkError(t, err, "no UID of the pod")
}
