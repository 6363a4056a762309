package kube

import (
	"strings"

	"railhead/internal/attribution"
)

// jobLabels returns those labels of a pod that tell its workload.
func jobLabels(labels map[string]string) map[string]string {
	var kept map[string]string
	keep := func(name string) {
		value, ok := labels[name]
		if !ok {
			return
		}
		if kept == nil {
			kept = map[string]string{}
		}
		kept[name] = strings.Clone(value) // not all of what it was decoded from
	}
	for _, row := range workloadLabels {
		keep(row.label)
	}
	keep(trainingOperator)
	return kept
}

// labelledWorkload returns the workload that the labels of a pod tell, the
// topmost of several; it is zero where they tell none.
func labelledWorkload(namespace string, labels map[string]string) attribution.Workload {
	for _, row := range workloadLabels {
		name := labels[row.label]
		if name == "" {
			continue
		}
		w := attribution.Workload{APIVersion: row.apiVersion, Kind: row.kind, Namespace: namespace, Name: name}
		if w.Kind == "" {
			of := trainingKinds[labels[trainingOperator]]
			w.APIVersion, w.Kind = of.apiVersion, of.kind
		}
		return w
	}
	return attribution.Workload{}
}
