package manifest

import (
	"reflect"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime"

	cniv1 "railhead/api/cni/v1"
	"railhead/api/railhead/v1alpha1"
	"railhead/api/spiderpool/v2beta1"
	sriovv1 "railhead/api/sriovnetwork/v1"
)

// TestKinds holds that every kind of api/ is in the table, and names in the table
// of renamed fields are those of fields.
func TestKinds(t *testing.T) {
	t.Parallel()
	scheme := runtime.NewScheme()
	for _, add := range []func(*runtime.Scheme) error{cniv1.AddToScheme, v1alpha1.AddToScheme, v2beta1.AddToScheme, sriovv1.AddToScheme} {
		if err := add(scheme); err != nil {
			t.Fatal(err)
		}
	}
	listed := map[reflect.Type]bool{}
	for _, k := range kinds {
		o := k.empty()
		listed[reflect.TypeOf(o).Elem()] = true
		if gvk, _, err := scheme.ObjectKinds(o); err != nil || gvk[0] != k.version.WithKind(k.kind) {
			t.Errorf("the table makes a %v (%v) of a %s", gvk, err, k.kind)
		}
	}
	for gvk, typ := range scheme.AllKnownTypes() {
		if strings.HasPrefix(typ.PkgPath(), "railhead/") && !strings.HasSuffix(gvk.Kind, "List") && !listed[typ] {
			t.Errorf("%v is not in the table", gvk)
		}
	}
	for typ, names := range renamed {
		for old, name := range names {
			fields := fieldsOf(typ)
			if _, ok := fieldOf(fields, name); !ok {
				t.Errorf("%v has no field %s to be meant by %s", typ, name, old)
			}
			if _, ok := fieldOf(fields, old); ok {
				t.Errorf("%v has a field %s, which is said to mean %s", typ, old, name)
			}
		}
	}
}

// BenchmarkDecode decodes a network as admission gets it.
func BenchmarkDecode(b *testing.B) {
	doc := []byte(`{"apiVersion":"spiderpool.spidernet.io/v2beta1","kind":"SpiderMultusConfig","metadata":{"name":"gpu1-sriov","namespace":"spiderpool",
		"uid":"0b6cfd0f-2b6c-4d9a-8a3f-4f7e1f1d5a10","resourceVersion":"812","generation":1,"creationTimestamp":"2026-01-02T03:04:05Z",
		"annotations":{"cni.spidernet.io/rdma-resource-inject":"rdma-network"}},
		"spec":{"cniType":"macvlan","enableCoordinator":true,"disableIPAM":false,"coordinator":{"mode":"auto","podRPFilter":0,"tunePodRoutes":true},
		"macvlan":{"master":["enp11s0f0np0"],"enableRdma":true,"rdmaResourceName":"spidernet.io/gpu1rdma","mtu":0,"vlanID":0,
		"ippools":{"ipv4":["gpu1-net11"],"matchMasterSubnet":false}}}}`)
	b.ReportAllocs()
	for b.Loop() {
		if _, errs, err := Decode(doc); err != nil || len(errs) > 0 {
			b.Fatal(err, errs)
		}
	}
}
