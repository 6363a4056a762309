package main

import (
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"railhead/internal/attach/record"
)

// printAttachment shows all that is known of one attachment.
func printAttachment(w io.Writer, v *attachmentView, now time.Time) error {
	if _, err := io.WriteString(w, attachmentHead(v, now)); err != nil {
		return err
	}
	networks := map[string]string{}
	for i := range v.Networks {
		networks[v.Networks[i].Interface] = v.Networks[i].title()
	}
	if err := printInterfaces(w, &v.Report, networks); err != nil {
		return err
	}
	if err := printRouting(w, v); err != nil {
		return err
	}
	if err := printChecks(w, &v.Report); err != nil {
		return err
	}
	var b strings.Builder
	printLines(&b, "plugins of others, run in this order:", runLines(v))
	printLines(&b, "not as it was made:", v.Differences)
	printLines(&b, "notes:", v.Report.Notes)
	_, err := io.WriteString(w, b.String())
	return err
}

// attachmentHead names pod and sandbox.
func attachmentHead(v *attachmentView, now time.Time) string {
	var b strings.Builder
	text := fmt.Sprintf("pod %s: %s", v.fullName(), v.stateCell())
	if !v.At.IsZero() {
		text += fmt.Sprintf(", begun %s ago (%s)", age(v.At, now), v.At.UTC().Format(time.RFC3339))
	}
	if v.Report.Took > 0 {
		text += ", took " + took(v.Report.Took)
	}
	fmt.Fprintln(&b, printable(text))
	fmt.Fprintln(&b, printable("sandbox "+v.ContainerID))
	if v.NetNS != "" {
		text := "network namespace " + v.NetNS
		if v.plan != nil {
			text += " (" + v.plan.ID.String() + ")"
		}
		fmt.Fprintln(&b, printable(text))
	}
	if v.Newer != 0 {
		fmt.Fprintf(&b, "written by a later release (version %d): there is more to it than is shown here\n", v.Newer)
	}
	return b.String()
}

// printInterfaces is also of what the pod's annotation says.
func printInterfaces(w io.Writer, r *record.Report, networks map[string]string) error {
	if len(r.Interfaces) == 0 {
		return nil
	}
	rows := make([]interfaceRow, len(r.Interfaces))
	for i, at := range r.Interfaces {
		rows[i] = interfaceRow{Interface: at, network: networks[at.Name]}
	}
	return printSection(w, "interfaces:", interfacesTable, rows)
}

// printRouting shows each route and rule of the plan.
func printRouting(w io.Writer, v *attachmentView) error {
	if v.plan == nil {
		return nil
	}
	var routes []routeRow
	var rules []ruleRow
	in, on := &v.plan.Routing.Pod, &v.plan.Routing.Host
	for _, r := range in.Routes {
		routes = append(routes, routeRow{r, "pod"})
	}
	for _, r := range on.Routes {
		routes = append(routes, routeRow{r, "node"})
	}
	for _, r := range in.Rules {
		rules = append(rules, ruleRow{r, "pod"})
	}
	for _, r := range on.Rules {
		rules = append(rules, ruleRow{r, "node"})
	}
	if len(routes) > 0 {
		if err := printSection(w, "routes:", routesTable, routes); err != nil {
			return err
		}
	}
	if len(rules) > 0 {
		return printSection(w, "rules:", rulesTable, rules)
	}
	return nil
}

// printChecks shows what was asked on the wire, failures first, and the times.
func printChecks(w io.Writer, r *record.Report) error {
	checks := slices.Clone(r.Checks)
	slices.SortStableFunc(checks, func(a, b record.Check) int {
		switch {
		case a.OK == b.OK:
			return 0
		case b.OK:
			return -1
		}
		return 1
	})
	if len(checks) > 0 {
		if err := printSection(w, "checks:", checksTable, checks); err != nil {
			return err
		}
	}
	if len(r.Steps) > 0 {
		return printSection(w, "steps:", stepsTable, r.Steps)
	}
	return nil
}

// runLines are the plugins of others by interface.
func runLines(v *attachmentView) []string {
	var lines []string
	for i := range v.Networks {
		if n := &v.Networks[i]; len(n.Run) > 0 {
			lines = append(lines, fmt.Sprintf("%s (%s): %s", n.Interface, n.title(), strings.Join(n.Run, ", ")))
		}
	}
	return lines
}
