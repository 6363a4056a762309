package policy

import (
	"maps"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/validation"

	"railhead/api/spiderpool/v2beta1"
)

// ownPool is what a pool is for, if it is an application's own: interface and
// family, in the words of its labels.
type ownPool struct {
	app         Application
	nic         string
	version     int64
	subnet      string
	isReclaimed bool
}

// ownPoolOf reads labels of a pool; false if it is no application's own.
func ownPoolOf(pool *v2beta1.SpiderIPPool) (ownPool, bool) {
	app, review := ownerOfLabels(pool.Labels)
	if app == nil || !review.OK() {
		return ownPool{}, false
	}
	own := ownPool{
		app:         *app,
		nic:         pool.Labels[v2beta1.LabelInterface],
		version:     6,
		subnet:      pool.Labels[v2beta1.LabelSubnet],
		isReclaimed: pool.Labels[v2beta1.LabelReclaim] != "false",
	}
	if pool.Labels[v2beta1.LabelIPVersion] == "IPv4" {
		own.version = 4
	}
	return own, true
}

// labels are the labels of such a pool.
func (o ownPool) labels() map[string]string {
	labels := o.app.Labels()
	maps.Copy(labels, map[string]string{
		v2beta1.LabelInterface: o.nic,
		v2beta1.LabelIPVersion: "IPv" + strconv.FormatInt(o.version, 10),
		v2beta1.LabelSubnet:    o.subnet,
		v2beta1.LabelReclaim:   strconv.FormatBool(o.isReclaimed),
	})
	return labels
}

// object is such a pool without addresses. It has the finalizer from the start,
// so that its addresses are never lost.
func (o ownPool) object(name string, subnet Subnet) *v2beta1.SpiderIPPool {
	version := o.version
	return &v2beta1.SpiderIPPool{
		ObjectMeta: metav1.ObjectMeta{Name: name, Labels: o.labels(), Finalizers: []string{v2beta1.Finalizer}},
		Spec: v2beta1.IPPoolSpec{
			IPVersion:   &version,
			Subnet:      subnet.CIDR.String(),
			PodAffinity: o.app.Affinity(),
		},
	}
}

// isOf says whether both are the same application, or one that was made again
// under its name: all but the UID is the same.
func (a Application) isOf(b Application) bool {
	a.UID, b.UID = "", ""
	return a == b
}

// autoPoolName is the name of an application's own pool:
// auto{4|6}-{application}-{interface}-{last 5 of its UID}, in lower case and
// with the application cut where the name were too long. Who looks for such a
// pool goes by its labels: where the name is taken, the pool's has a suffix.
func autoPoolName(app Application, nic string, version int64) string {
	head := "auto" + strconv.FormatInt(version, 10) + "-"
	tail := "-" + labelOf(nic, false) + "-" + labelOf(lastFive(app.UID), false)
	// A suffix of two letters still fits.
	room := validation.DNS1123SubdomainMaxLength - len(head) - len(tail) - 3
	name := labelOf(app.Name, true)
	if len(name) > room {
		name = strings.TrimRight(name[:room], "-.")
	}
	return head + name + tail
}

// lastFive is the end of a UID.
func lastFive(uid types.UID) string {
	return string(uid[max(0, len(uid)-5):])
}

// labelOf is a text in lower case, with "-" for what no name may have; dots may
// stay where names are made of several labels.
func labelOf(text string, dots bool) string {
	made := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.' && dots:
			return r
		}
		return '-'
	}, strings.ToLower(text))
	for strings.Contains(made, "..") || strings.Contains(made, ".-") || strings.Contains(made, "-.") {
		made = strings.NewReplacer("..", ".", ".-", "-", "-.", "-").Replace(made)
	}
	if made = strings.Trim(made, "-."); made == "" {
		return "x"
	}
	return made
}
