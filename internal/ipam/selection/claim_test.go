package selection

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/spiderpool/v2beta1"
	"railhead/internal/policy"
)

// ownPool is the pool that was made for an interface of Deployment ai/web.
func ownPool(name, nic string, uid types.UID, subnet, ips string) *v2beta1.SpiderIPPool {
	app := policy.Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "ai", Name: "web", UID: uid}
	p := &v2beta1.SpiderIPPool{ObjectMeta: metav1.ObjectMeta{Name: name, UID: types.UID(name), Labels: app.Labels()}}
	p.Labels[v2beta1.LabelInterface] = nic
	p.Spec = v2beta1.IPPoolSpec{Subnet: subnet, IPs: []string{ips}, PodAffinity: app.Affinity()}
	return p
}

func TestOwnPools(t *testing.T) {
	t.Parallel()
	c := theCatalog(t)
	c.Put(ownPool("auto4-web-net1-uid-1", "net1", "uid-1", "10.20.0.0/24", "10.20.0.1-10.20.0.4"))
	c.Put(ownPool("auto4-web-net1-uid-0", "net1", "uid-0", "10.20.0.0/24", "10.20.0.5"))
	c.Put(ownPool("auto4-web-net2-uid-1", "net2", "uid-1", "10.21.0.0/24", "10.21.0.1"))
	f := thePod(map[string]string{v2beta1.AnnotationSubnets: `[{"interface":"net1","ipv4":["storage"]}]`, v2beta1.AnnotationPool: `{"ipv4":["auto4-*","rail0"]}`})
	f.Pod.OwnerReferences = []metav1.OwnerReference{{APIVersion: "apps/v1", Kind: "ReplicaSet", Name: "web-5", UID: "rs", Controller: new(true)}}
	f.Interfaces = append(f.Interfaces, Interface{Name: "net2", IPAM: true})
	web := policy.Application{GroupVersion: "apps/v1", Kind: "Deployment", Namespace: "ai", Name: "web", UID: "uid-1"}

	f.Above = []policy.Application{web}
	s, err := Select(c, f)
	want := []string{"net1 IPv4: auto4-web-net1-uid-1", "net2 IPv4: auto4-web-net1-uid-0 auto4-web-net1-uid-1 auto4-web-net2-uid-1 rail0"}
	if diff := cmp.Diff(want, told(&s)); diff != "" || err != nil {
		t.Errorf("%v; -want +got:\n%s", err, diff)
	}

	going := ownPool("auto4-web-net1-uid-1", "net1", "uid-1", "10.20.0.0/24", "10.20.0.1-10.20.0.4")
	going.DeletionTimestamp = &metav1.Time{}
	c.Put(going)
	if _, err = Select(c, f); !errors.Is(err, ErrNotYet) {
		t.Errorf("while the pool goes: %v", err)
	}

	web.UID = "uid-2"
	f.Above[0] = web
	if _, err = Select(c, f); !errors.Is(err, ErrNotYet) || !strings.Contains(err.Error(), "interface net1: annotation ipam.spidernet.io/subnets asks for a pool of the own of Deployment ai/web (apps/v1), of IPv4 and SpiderSubnets [storage]") {
		t.Errorf("before the pool is made: %v", err)
	}

	f.Above = nil
	f.Pod.OwnerReferences[0].Name = "db-7"
	if s, err = Select(c, f); !errors.Is(err, ErrNotYet) || !slices.Contains(told(&s), "not auto4-web-net2-uid-1: the own pool of Deployment ai/web (apps/v1)") {
		t.Errorf("of another application: %q, %v", told(&s), err)
	}

	f.Pod.OwnerReferences = nil
	if _, err = Select(c, f); err == nil || errors.Is(err, ErrNotYet) || !strings.Contains(err.Error(), "no application made the pod") {
		t.Errorf("of no application: %v", err)
	}

	config := policy.DefaultConfig()
	config.EnableAutoPool = false
	c.SetConfig(config)
	if _, err = Select(c, f); err == nil || !strings.Contains(err.Error(), "enableAutoPoolForApplication: false in conf.yml has these off") {
		t.Errorf("while these are off: %v", err)
	}
}
