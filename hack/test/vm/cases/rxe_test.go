package cases

import "testing"

func TestAnyRXEOnVeth(t *testing.T) {
	Require(t)
	AddVeth(t, "va", "vb")
	AddRXE(t, "rxe0", "va")
	device, there := RDMADevices(t)["rxe0"]
	if !there || device.NodeType != "ca" {
		t.Fatalf("rdma dev: %+v", RDMADevices(t))
	}
	link := RDMALinks(t)["rxe0"]
	if link.Netdev != "va" || link.NetdevIndex != Links(t)["va"].Index || link.State != "ACTIVE" {
		t.Errorf("rdma link: %+v, and va is %+v", link, Links(t)["va"])
	}
	if got := ReadFile(t, "/sys/class/infiniband/rxe0/parent"); got != "va" {
		t.Errorf("parent in sysfs: %s", got)
	}
}

func TestSharedLinks(t *testing.T) {
	Require(t)
	if Exclusive(t) {
		t.Fatal("RDMA devices belong to one namespace each on this machine")
	}
	AddVeth(t, "va", "vb")
	AddVeth(t, "vc", "vd")
	AddMacvlan(t, "mv", "va")
	AddBond(t, "bo", "vc", "vd")
	for name, netdev := range map[string]string{"rxemv": "mv", "rxebo": "bo"} {
		AddRXE(t, name, netdev)
		if got := RDMALinks(t)[name].Netdev; got != netdev {
			t.Errorf("%s is on %q and not on %s", name, got, netdev)
		}
	}
	AddIPVLAN(t, "iv", "vb")
	AddVLAN(t, "vl", "vb", "7")

	ns := NewNetNS(t, "pod")
	Run(t, "ip", "link", "set", "mv", "netns", "pod")
	if _, sees := ns.RDMADevices(t)["rxemv"]; !sees {
		t.Error("in shared mode the pod does not see rxemv")
	}
	if _, sees := RDMADevices(t)["rxemv"]; !sees {
		t.Error("in shared mode the host does not see rxemv any more")
	}
}
