package boards

import "railhead/hack/dashboards/grafana"

// steps is a first colour, then pairs of a value and the colour from there on.
func steps(first string, then ...grafana.Step) []grafana.Step {
	return append([]grafana.Step{{Color: first}}, then...)
}

func from(value float64, color string) grafana.Step {
	return grafana.Step{Color: color, Value: &value}
}

// used colours how much of a port is used: idle ports are dark, so that one
// idle rail among busy ones stands out as one busy among idle ones does.
func used() []grafana.Step {
	return steps("#1f2a3a", from(0.01, "#1e4d7b"), from(0.1, "#2b6cb0"), from(0.3, "#2f9e8f"), from(0.5, "#56a64b"), from(0.7, "#c9b037"), from(0.85, "#e0752d"), from(0.95, "#c4162a"))
}

// paused colours which part of the time a port stood still. From 5 % on it is
// seen in a job's speed.
func paused() []grafana.Step {
	return steps("#1f3a2a", from(0.001, "#2f7d4a"), from(0.01, "#a3a635"), from(0.05, "#e0752d"), from(0.3, "#c4162a"))
}

// badIfAny is green at zero and red above.
func badIfAny() []grafana.Step {
	return steps("green", from(1, "red"))
}

// attributionTexts explain how a device's numbers were given to a pod.
func attributionTexts() []grafana.Mapping {
	return []grafana.Mapping{{Type: "value", Options: map[string]grafana.Result{
		"exclusive":  {Index: 0, Text: "exclusive: the device is the pod's alone", Color: "green"},
		"qp_counter": {Index: 1, Text: "qp_counter: its queue pairs are counted apart", Color: "green"},
		"sole_user":  {Index: 2, Text: "sole_user: counted while no other pod used it", Color: "yellow"},
		"shared":     {Index: 3, Text: "shared: several users, traffic cannot be told apart", Color: "orange"},
	}}}
}
