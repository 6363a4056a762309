//go:build linux

package vm

import (
	"os"
	"slices"
	"strings"

	"railhead/hack/test/vm/lab"
	"railhead/hack/test/vm/plan"
)

// kernels are a new one and that of stable, which machines run. They are pinned, in suites that keep what they once had,
// so that a run tells of a change of ours; with RAILHEAD_NIGHTLY=1 they are the newest there are, which sid has first.
func kernels() (recent, stable lab.Kernel) {
	if os.Getenv("RAILHEAD_NIGHTLY") == "1" {
		return lab.Kernel{Suite: "sid", Series: "7"}, lab.Kernel{Suite: "trixie", Series: "6.12"}
	}
	return lab.Kernel{Suite: "trixie-backports", Series: "7.2.12"}, lab.Kernel{Suite: "trixie", Series: "6.12.117"}
}

// casesPackage has the tests that are written for the lab. The beginning of their names is the machine they are for.
const casesPackage = "railhead/hack/test/vm/cases"

// kernelSuites run the tests of the packages that speak to the kernel, here as root and on a kernel with RDMA; without
// those that want what the lab has not: an ordinary user, or the kernel's headers.
func kernelSuites() []lab.Suite {
	left := []string{"TestIBDeviceUnreadable", "TestLinkModeTable", "TestListNotPermitted", "TestSysFSNotPermitted"}
	var suites []lab.Suite
	for _, name := range []string{"ethtool", "netns", "rdmanl", "rtnl", "sysfs", "uevent"} {
		suites = append(suites, lab.Suite{
			Packages: "railhead/internal/kernel/" + name,
			Tests:    func(test string) bool { return !slices.Contains(left, test) },
		})
	}
	return suites
}

// boxSuites run those tests of machines made of namespaces that depend on cgroups, which are v2 here.
func boxSuites() []lab.Suite {
	return []lab.Suite{
		{Packages: "railhead/hack/cluster/box", Tests: named(
			"TestCgroupView", "TestDriverKilledLater", "TestFrozen", "TestLinks", "TestReboot", "TestRoot", "TestRunStatus",
			"TestServiceRe", "TestStartCrashes", "TestSweep",
		)},
		{Packages: "railhead/hack/cluster/box/cgroup", Tests: named("TestKill", "TestMakeRemove", "TestParents")},
	}
}

// attachSuites run those tests of pods' interfaces that need links which few kernels of containers have: ipvlan, VLANs
// and bonds.
func attachSuites() []lab.Suite {
	return []lab.Suite{
		{Packages: "railhead/internal/attach", Tests: named("TestSharedLinks", "TestKinds", "TestApplyErrors", "TestHostDevice", "TestCheck")},
		{Packages: "railhead/internal/attach/probe", Tests: named("TestIPVLAN")},
		{Packages: "railhead/internal/cniserver", Tests: named("TestIfacer")},
	}
}

// machines is the lab. A test of another package is run here by adding a suite with that package.
func machines() []lab.Machine {
	recent, stable := kernels()
	return []lab.Machine{
		{
			// RDMA devices that every namespace sees, as a node is set up by default.
			Name: "shared", Kernel: recent, MovableRXE: true,
			Modules:  []plan.Module{{Name: "ib_core", Params: []string{"netns_mode=1"}}, {Name: "ib_uverbs"}, {Name: "rdma_ucm"}},
			Programs: []string{"railhead/cmd/railhead"},
			Suites:   append(kernelSuites(), lab.Suite{Packages: casesPackage, Tests: named("TestShared", "TestAny")}),
		},
		{
			// A node with two rails: each with its own NUMA node, PCIe switch and SR-IOV card; RDMA devices belong to
			// one namespace each. The mode must be set before any other module loads ib_core.
			Name: "sriov", Kernel: recent, MovableRXE: true,
			Nodes: []lab.Node{{PFs: 1}, {PFs: 1}},
			Modules: []plan.Module{
				{Name: "ib_core", Params: []string{"netns_mode=0"}},
				{Name: "ib_uverbs"},
				{Name: "rdma_ucm"},
				{Name: "rdma_rxe"},
				{Name: "igb"},
				{Name: "igbvf"},
			},
			Programs: []string{"railhead/cmd/railhead", "railhead/hack/capture"},
			Suites:   []lab.Suite{{Packages: casesPackage, Tests: named("TestSRIOV", "TestAny")}},
		},
		{
			// What most clusters run: the stable kernel with its own modules. Its cgroups are v2, which machines of
			// namespaces must do with as well as with v1.
			Name: "stable", Kernel: stable,
			Modules:  []plan.Module{{Name: "ib_core", Params: []string{"netns_mode=1"}}, {Name: "ib_uverbs"}, {Name: "rdma_ucm"}},
			Programs: []string{"railhead/cmd/railhead-cni"},
			Suites:   append(append(boxSuites(), attachSuites()...), lab.Suite{Packages: casesPackage, Tests: named("TestStable", "TestAny")}),
		},
	}
}

// named selects tests by the beginnings of their names.
func named(prefixes ...string) func(string) bool {
	return func(name string) bool {
		for _, prefix := range prefixes {
			if strings.HasPrefix(name, prefix) {
				return true
			}
		}
		return false
	}
}
