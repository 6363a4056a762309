package injection

import (
	"fmt"
	"strings"
	"testing"

	cniv1 "railhead/api/cni/v1"
	"railhead/internal/policy"
)

// TestInjectAtMost wants a pod to be given no more networks than it can be attached to.
func TestInjectAtMost(t *testing.T) {
	t.Parallel()
	const want = "metadata.annotations[k8s.v1.cni.cncf.io/networks]: Too many: 153: networks, of which annotation cni.spidernet.io/rdma-resource-inject adds 1: want at most 152"
	for listed, refused := range map[int]string{policy.MostNetworks - 1: "", policy.MostNetworks: want} {
		names := make([]string, listed)
		for n := range names {
			names[n] = fmt.Sprintf("default/x%d", n)
		}
		p := pod(map[string]string{cniv1.AnnotationNetworks: strings.Join(names, ","), rdma: "one"}, "")
		_, err := Inject(p, nil, fabric, values)
		if got := fmt.Sprint(err); refused != "" && got != refused || refused == "" && err != nil {
			t.Errorf("of %d that are listed: %v, want %q", listed, err, refused)
		}
	}
	p := pod(map[string]string{cniv1.AnnotationNetworks: strings.Repeat("X,", 1<<17), rdma: "one"}, "")
	if _, err := Inject(p, nil, fabric, values); err == nil || len(err.Error()) > 1<<10 {
		t.Errorf("of a long list that is wrong: %.300v", err)
	}
}
