package simulation

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials/insecure"
	podresources "k8s.io/kubelet/pkg/apis/podresources/v1"

	"railhead/internal/kernel/netns"
)

// churn is a scenario in which one pod comes and goes.
const churn = `
node: gpu-1
cards:
- {name: mlx5_0, pci: "0000:18:00.0", vfs: 2}
pods:
- {namespace: ml, name: step, from: 10s, for: 20s, every: 30s, devices: [mlx5_0/0], resource: "vendor/rail{rail}", connections: 1, traffic: {receive: 1G, transmit: 1G}}
- {namespace: ml, name: load, devices: [mlx5_0], use: shared, hostNetwork: true, resource: shared}
`

// spaces returns the namespaces of pods, as an agent finds them.
func (r *running) spaces() []netns.Found {
	r.tb.Helper()
	found, err := netns.List(r.Node().FS().Path("proc"))
	if err != nil {
		r.tb.Fatal(err)
	}
	return found
}

func TestPodComesAndGoes(t *testing.T) {
	t.Parallel()
	r := beginText(t, churn)
	for turn := range 3 {
		if found := r.spaces(); len(found) != 0 {
			t.Fatalf("before pod %d there are namespaces %v", turn, found)
		}
		if f := r.function("mlx5_0/0"); f.place != r.machine.host {
			t.Fatalf("before pod %d its VF is not at home", turn)
		}
		r.pass(10 * time.Second)
		found := r.spaces()
		if len(found) != 1 || found[0].PID == 0 || !strings.Contains(found[0].Path, "/run/netns/cni-") {
			t.Fatalf("namespaces of pod %d: %v, want one with a name and a process", turn, found)
		}
		checkPod(t, r, found[0])
		r.pass(20 * time.Second)
	}
}

// checkPod checks what is seen from within a pod with a VF.
func checkPod(t *testing.T, r *running, found netns.Found) {
	t.Helper()
	space, err := r.Node().Open(found.Path)
	if err != nil {
		t.Fatal(err)
	}
	defer space.Close()
	if space.ID() != found.ID {
		t.Errorf("namespace %v, want %v", space.ID(), found.ID)
	}
	client, err := space.RDMA()
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	devices, err := client.DevicesWithPorts()
	if err != nil || len(devices) != 1 || devices[0].Ports[0].NetdevName != "net1" {
		t.Fatalf("devices %+v, %v, want one on net1", devices, err)
	}
	contexts, err := client.Contexts(devices[0].Index)
	if err != nil || len(contexts) != 1 {
		t.Fatalf("contexts %v, %v, want one", contexts, err)
	}
	view, err := space.SysFS()
	if err != nil {
		t.Fatal(err)
	}
	defer view.Close()
	names, err := r.Node().FS().WithSys(fmt.Sprintf("/proc/self/fd/%d", view.Fd())).IBDeviceNames()
	if diff := cmp.Diff([]string{devices[0].Name}, names); diff != "" || err != nil {
		t.Errorf("sysfs (-netlink +sysfs): %v\n%s", err, diff)
	}
	cgroup, err := os.ReadFile(r.Node().FS().Path("proc", fmt.Sprint(contexts[0].PID), "cgroup"))
	if err != nil {
		t.Fatal(err)
	}
	uid := strings.ReplaceAll(r.machine.runs[len(r.machine.runs)-1].uid, "-", "_")
	if !strings.HasPrefix(string(cgroup), "0::/kubepods.slice/") || !strings.Contains(string(cgroup), "-pod"+uid+".slice/cri-containerd-") {
		t.Errorf("cgroup %q, want that of pod %s", cgroup, uid)
	}
}

// TestHeldNamespace checks that who holds a pod's namespace open, or a client in
// it, keeps its devices there.
func TestHeldNamespace(t *testing.T) {
	t.Parallel()
	r := beginText(t, churn)
	r.pass(10 * time.Second)
	found := r.spaces()[0]
	space, err := r.Node().Open(found.Path)
	if err != nil {
		t.Fatal(err)
	}
	r.pass(25 * time.Second)
	if r.function("mlx5_0/0").place == r.machine.host {
		t.Error("the VF came home while its namespace was held")
	}
	if _, err := r.Node().Open(found.Path); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("to open it again: %v, want fs.ErrNotExist", err)
	}
	client, err := space.Links()
	if err != nil {
		t.Fatal(err)
	}
	if err := errors.Join(space.Close(), space.Close()); err != nil {
		t.Error(err)
	}
	r.pass(time.Second)
	if r.function("mlx5_0/0").place == r.machine.host {
		t.Error("the VF came home while a client was open in its namespace")
	}
	if err := client.Close(); err != nil {
		t.Error(err)
	}
	r.pass(time.Second)
	if r.function("mlx5_0/0").place != r.machine.host {
		t.Error("the VF is not at home although nobody holds its namespace")
	}
}

func TestProcesses(t *testing.T) {
	t.Parallel()
	tests := []struct{ cgroup, want string }{
		{"{version: 2, driver: systemd}", "0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod"},
		{"{version: 2, driver: cgroupfs}", "0::/kubepods/burstable/pod"},
		{"{version: 1, driver: systemd}", "6:rdma:/kubepods.slice/kubepods-burstable.slice/"},
		{"{version: 1, driver: cgroupfs}", "6:rdma:/kubepods/burstable/pod"},
	}
	for _, tt := range tests {
		t.Run(tt.cgroup, func(t *testing.T) {
			t.Parallel()
			r := beginText(t, churn+"cgroup: "+tt.cgroup)
			pid := r.machine.runs[0].users[0]
			proc := r.Node().FS()
			cgroup, err := os.ReadFile(proc.Path("proc", fmt.Sprint(pid), "cgroup"))
			if err != nil || !strings.HasPrefix(string(cgroup), tt.want) {
				t.Errorf("cgroup %q, %v, want %q", cgroup, err, tt.want)
			}
			processes, err := proc.Processes("python3")
			if err != nil || len(processes) != 1 || processes[0].PID != pid {
				t.Errorf("processes %v, %v, want %d", processes, err, pid)
			}
		})
	}
}

func TestPodResources(t *testing.T) {
	t.Parallel()
	r := beginText(t, churn)
	conn, err := grpc.NewClient("unix://"+r.PodResourcesSocket(), grpc.WithTransportCredentials(insecure.NewCredentials()))
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close()
	client := podresources.NewPodResourcesListerClient(conn)
	list := func() map[string][]string {
		t.Helper()
		answer, err := client.List(t.Context(), &podresources.ListPodResourcesRequest{})
		if err != nil {
			t.Fatal(err)
		}
		given := map[string][]string{}
		for _, p := range answer.PodResources {
			for _, d := range p.Containers[0].Devices {
				given[p.Name+" "+d.ResourceName] = d.DeviceIds
			}
		}
		return given
	}
	opaque := list()["load shared"]
	if len(opaque) != 1 || strings.Contains(opaque[0], ":") {
		t.Errorf("shared devices %q, want one that says nothing", opaque)
	}
	r.pass(10 * time.Second)
	want := map[string][]string{"load shared": opaque, "step-0 vendor/rail0": {"0000:18:01.0"}}
	if diff := cmp.Diff(want, list()); diff != "" {
		t.Errorf("resources (-want +got):\n%s", diff)
	}
	if _, err := client.Get(t.Context(), &podresources.GetPodResourcesRequest{PodNamespace: "ml", PodName: "gone"}); err == nil {
		t.Error("a pod that is not there has resources")
	}
}

// TestUnknownPods checks pods that the API server or the kubelet knows nothing
// of.
func TestUnknownPods(t *testing.T) {
	t.Parallel()
	r := beginText(t, `
node: gpu-1
cards: [{name: mlx5_0, pci: "0000:18:00.0", vfs: 2}]
pods:
- {namespace: ml, name: static, devices: [mlx5_0/0], resource: vf, unscheduled: true}
- {namespace: ml, name: direct, devices: [mlx5_0/1], resource: vf, noPodResource: true}
`)
	if _, ok := r.api.store.get(pods(), "ml", "static"); ok {
		t.Error("the API server knows a pod that it should not")
	}
	if _, ok := r.api.store.get(pods(), "ml", "direct"); !ok {
		t.Error("the API server does not know a pod that it should")
	}
	if given := r.kubelet.list(); len(given) != 1 || given[0].Name != "static" {
		t.Errorf("the kubelet gave %v, want the devices of static", given)
	}
	if found := r.spaces(); len(found) != 2 {
		t.Errorf("namespaces %v, want those of both", found)
	}
}
