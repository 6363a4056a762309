package webhook

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionv1 "k8s.io/api/admission/v1"

	"railhead/internal/policy"
	"railhead/internal/validation"
)

// TestSaysTheSame: of an object that is wrong in several ways, both webhooks and
// "railhead validate" say the same, in one order.
func TestSaysTheSame(t *testing.T) {
	const head = "apiVersion: spiderpool.spidernet.io/v2beta1\nkind: "
	for name, text := range map[string]string{
		"broken":   brokenPool(""),
		"misruled": misruledPool(""),
		"order": head + `SpiderIPPool
metadata: {name: a}
spec:
  vlan: 99999
  subnet: 10.0.0.0/24
  ips: [10.0.0.9, 10.1.0.1]
  routes: [{dst: 10.0.0.0/8, gateway: 10.60.0.1}, {dst: 10.70.0.0, gw: 10.99.0.1}]
  disable: "yes"
  podAffinity: {app: web}
`,
		"block": head + `SpiderMultusConfig
metadata: {name: a, namespace: default}
spec: {ibSriov: {pkey: 5}, cniType: ib-sriov, coordinator: {mode: Underlay, podRPFilter: x}}
`,
		"no effect": head + `SpiderIPPool
metadata: {name: a}
spec: {subnet: 10.0.0.7/24, ip: [10.0.0.1], gateway: 10.1.0.1}
`,
	} {
		t.Run(name, func(t *testing.T) {
			b := newBench(t)
			report := validation.Review([]validation.Source{{Name: "f", Text: []byte(text)}}, validation.Options{Config: policy.DefaultConfig()})
			var want []string
			for _, e := range report.Objects[0].Errors {
				want = append(want, e.Path+": "+e.Text)
			}
			for _, path := range []string{pathMutate, pathValidate} {
				response := b.ask(t, path, request(t, admissionv1.Create, text, ""))
				var got []string
				for _, cause := range response.Result.Details.Causes {
					got = append(got, cause.Field+": "+cause.Message)
				}
				if diff := cmp.Diff(want, got); diff != "" || len(want) == 0 {
					t.Errorf("%s (-validate +webhook):\n%s", path, diff)
				}
				if path != pathMutate {
					continue
				}
				if diff := cmp.Diff(report.Objects[0].Warnings, response.Warnings); diff != "" {
					t.Errorf("warnings (-validate +webhook):\n%s", diff)
				}
			}
		})
	}
}
