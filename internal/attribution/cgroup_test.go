package attribution

import (
	"strings"
	"testing"

	"railhead/internal/kernel/sysfs"
)

const (
	someUID   = "8a5d3c1e-0f2b-4c6d-9e7a-1b2c3d4e5f60"
	staticUID = "4f1f0b7c2d3e4a5b6c7d8e9fa0b1c2d3"
)

var someID = strings.Repeat("0123456789abcdef", 4)

// underscored is how systemd's slices write a UID.
func underscored(uid string) string { return strings.ReplaceAll(uid, "-", "_") }

// groups are the lines of a /proc/PID/cgroup; those without a path are left out.
func groups(text string) (all []sysfs.Cgroup) {
	for line := range strings.Lines(text) {
		if fields := strings.SplitN(strings.TrimSuffix(line, "\n"), ":", 3); len(fields) == 3 {
			all = append(all, sysfs.Cgroup{Path: fields[2]})
		}
	}
	return all
}

func TestPodOf(t *testing.T) {
	t.Parallel()
	systemd := "kubepods-burstable-pod" + underscored(someUID) + ".slice"
	for name, test := range map[string]struct {
		text string
		want string // empty for none
	}{
		"v2 systemd containerd": {
			"0::/kubepods.slice/kubepods-burstable.slice/" + systemd + "/cri-containerd-" + someID + ".scope\n",
			someUID,
		},
		"v2 systemd guaranteed CRI-O": {
			"0::/kubepods.slice/kubepods-pod" + underscored(someUID) + ".slice/crio-" + someID + ".scope/container\n",
			someUID,
		},
		"v2 systemd CRI-O monitor": {
			"0::/kubepods.slice/kubepods-burstable.slice/" + systemd + "/crio-conmon-" + someID + ".scope\n",
			someUID,
		},
		"v2 cgroupfs": {
			"0::/kubepods/besteffort/pod" + someUID + "/" + someID + "\n",
			someUID,
		},
		"v2 cgroupfs guaranteed CRI-O": {
			"0::/kubepods/pod" + someUID + "/crio-" + someID + "\n",
			someUID,
		},
		"v2 pod alone": {
			"0::/kubepods.slice/kubepods-burstable.slice/" + systemd + "\n",
			someUID,
		},
		"v2 static pod": {
			"0::/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod" + staticUID + ".slice/cri-containerd-" + someID + ".scope",
			staticUID,
		},
		"v1 docker": {
			"12:pids:/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod" + underscored(someUID) + ".slice/docker-" + someID + ".scope\n" +
				"1:name=systemd:/user.slice\n",
			someUID,
		},
		"v1 not in every hierarchy": {
			"12:rdma:/\n11:cpu,cpuacct:/kubepods/burstable/pod" + someUID + "/" + someID + "\n",
			someUID,
		},
		"hybrid, containerd without its systemd setting": {
			"1:name=systemd:/system.slice/containerd.service/" + systemd + ":cri-containerd:" + someID + "\n0::/system.slice/containerd.service\n",
			someUID,
		},
		"kubelet in a slice of a node that is a container": {
			"0::/docker/" + someID + "/kubelet.slice/kubelet-kubepods.slice/kubelet-kubepods-burstable.slice/kubelet-kubepods-burstable-pod" +
				underscored(someUID) + ".slice/cri-containerd-" + someID + ".scope\n",
			someUID,
		},
		"reader in a cgroup namespace": {
			"0::/../../pod" + someUID + "/" + someID + "\n",
			someUID,
		},
		"pods in a pod": {
			"0::/kubepods/pod" + someUID + "/" + someID + "/docker/x/kubepods/pod" + staticUID + "/" + someID + "\n",
			someUID,
		},
		"container with something below": {
			"0::/kubepods/pod" + someUID + "/" + someID + "/init.scope\n",
			someUID,
		},
		"host":                      {"0::/system.slice/sshd.service\n", ""},
		"root":                      {"0::/\n", ""},
		"container without pod":     {"0::/system.slice/docker-" + someID + ".scope\n", ""},
		"kubelet":                   {"0::/kubepods.slice/kubepods-burstable.slice\n", ""},
		"podman":                    {"0::/machine.slice/libpod-" + someID + ".scope\n", ""},
		"UID of the wrong length":   {"0::/kubepods/pod" + someUID[1:] + "/" + someID + "\n", ""},
		"UID with a foreign sign":   {"0::/kubepods/podZ" + someUID[1:] + "/" + someID + "\n", ""},
		"UID with dashes misplaced": {"0::/kubepods/pod" + strings.Replace(someUID, "-", "0", 1)[:35] + "-\n", ""},
		"no path":                   {"0:\n", ""},
		"empty":                     {"", ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := podOf(groups(test.text)); got != test.want {
				t.Errorf("%q, want %q", got, test.want)
			}
		})
	}
}

// FuzzPodOf holds that whatever is found is well formed and stands in the
// text, and that the pod of a process is found whatever the prefix.
func FuzzPodOf(f *testing.F) {
	f.Add("0::/kubepods.slice/kubepods-pod" + underscored(someUID) + ".slice/crio-" + someID + ".scope\n")
	f.Add("1:name=systemd:/a/kubepods-pod" + underscored(someUID) + ".slice:cri-containerd:" + someID)
	f.Add("0::/kubepods/pod" + staticUID + "/" + someID + "\n0::/")
	f.Add("0::/kubelet.slice/x")
	f.Add("0::/po\nd" + staticUID + "/popodd" + someUID)
	f.Fuzz(func(t *testing.T, text string) {
		if got := podOf(groups(text)); got != "" && (!isPodUID(got) || !strings.Contains(strings.ReplaceAll(text, "_", "-"), "pod"+got)) {
			t.Errorf("UID %q is not one, or not in the text", got)
		}
		prefix := strings.NewReplacer("\n", "x", "pod", "x").Replace(text) // what is around either makes no other "pod"
		for _, pod := range []string{"pod" + someUID + "/", "kubepods-pod" + underscored(someUID) + ".slice/cri-containerd-"} {
			if got := podOf(groups("0::" + prefix + "/" + pod + someID)); got != someUID {
				t.Errorf("behind %q: %q, want %q", prefix, got, someUID)
			}
		}
	})
}
