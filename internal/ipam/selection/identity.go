package selection

import (
	"fmt"
	"strconv"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"railhead/internal/policy"
)

// Kinds of an Identity.
const (
	KindStatefulSet    = "StatefulSet"
	KindVirtualMachine = "VirtualMachine"
)

// What KubeVirt calls its things.
// Source: staging/src/kubevirt.io/api/core/v1/types.go of KubeVirt.
const (
	kubevirtGroup     = "kubevirt.io"
	kindInstance      = "VirtualMachineInstance"
	labelLauncher     = "kubevirt.io"
	launcher          = "virt-launcher"
	labelMigrationJob = "kubevirt.io/migrationJobUID" // of the pod that a machine moves to
)

// Identity is a pod that keeps its addresses over its lives: the one of an
// ordinal of a StatefulSet, or that of a virtual machine. The zero Identity is
// of all other pods.
type Identity struct {
	Kind, Namespace, Name string
	Ordinal               int64 // of a StatefulSet, from its start ordinal up
}

// String is the identity as leases and ledgers have it:
// "StatefulSet/namespace/name/ordinal" or "VirtualMachine/namespace/name"; "" for none.
func (i Identity) String() string {
	switch i.Kind {
	case "":
		return ""
	case KindStatefulSet:
		return i.Kind + "/" + i.Namespace + "/" + i.Name + "/" + strconv.FormatInt(i.Ordinal, 10)
	}
	return i.Kind + "/" + i.Namespace + "/" + i.Name
}

// ParseIdentity reads what String wrote.
func ParseIdentity(text string) (Identity, error) {
	parts := strings.Split(text, "/")
	i := Identity{Kind: parts[0]}
	if len(parts) >= 3 {
		i.Namespace, i.Name = parts[1], parts[2]
	}
	switch {
	case i.Namespace == "" || i.Name == "":
	case i.Kind == KindVirtualMachine && len(parts) == 3:
		return i, nil
	case i.Kind == KindStatefulSet && len(parts) == 4:
		if ordinal, ok := ordinalOf(parts[3]); ok {
			i.Ordinal = ordinal
			return i, nil
		}
	}
	return Identity{}, fmt.Errorf(`%q is no identity: want "StatefulSet/namespace/name/ordinal" or "VirtualMachine/namespace/name"`, text)
}

// IsWithin says whether a StatefulSet with so many replicas from a start ordinal
// has the pod of this identity.
func (i Identity) IsWithin(start, replicas int64) bool {
	return i.Ordinal >= start && i.Ordinal-start < replicas
}

// IdentityOf returns the identity of a pod; zero if it has none, or the
// configuration keeps no addresses for its kind.
func IdentityOf(pod *metav1.ObjectMeta, config policy.Config) Identity {
	owner := metav1.GetControllerOfNoCopy(pod)
	if owner == nil {
		return Identity{}
	}
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	switch {
	case owner.Kind == KindStatefulSet && group == "apps" && config.StatefulSets:
		digits, named := strings.CutPrefix(pod.Name, owner.Name+"-")
		if ordinal, ok := ordinalOf(digits); ok && named {
			return Identity{KindStatefulSet, pod.Namespace, owner.Name, ordinal}
		}
	case owner.Kind == kindInstance && group == kubevirtGroup && config.KubeVirt && pod.Labels[labelLauncher] == launcher:
		return Identity{Kind: KindVirtualMachine, Namespace: pod.Namespace, Name: owner.Name}
	}
	return Identity{}
}

// isMigrationTarget says whether a virtual machine moves to this pod. The label
// stays once it has arrived; addresses are asked for before that.
func isMigrationTarget(pod *metav1.ObjectMeta) bool { return pod.Labels[labelMigrationJob] != "" }

// ordinalOf reads an ordinal as pods are named: without sign and leading zeros.
func ordinalOf(digits string) (int64, bool) {
	n, err := strconv.ParseInt(digits, 10, 64)
	return n, err == nil && n >= 0 && strconv.FormatInt(n, 10) == digits
}
