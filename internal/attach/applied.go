package attach

import (
	"fmt"
	"io/fs"
	"slices"

	"railhead/internal/attach/routing"
	"railhead/internal/kernel/rtnl"
)

// isApplied says of a plan that makes no links, which would be in its own way,
// whether its rules are there.
func (w *work) isApplied() error {
	moves := func(i PlannedInterface) bool { return i.Kind == HostDevice }
	if w.links() > 0 || len(w.plan.Routing.Pod.Rules) == 0 || slices.ContainsFunc(w.plan.Interfaces, moves) {
		return nil
	}
	rules, err := w.pod.Rules()
	if err != nil {
		return fmt.Errorf("rules of the pod: %w", err)
	}
	for _, r := range w.plan.Routing.Pod.Rules {
		if hasRule(rules, r) {
			return fmt.Errorf("interface %s: the pod has its rule of priority %d%s for table %d: want none before it is applied: %w", r.Owner, r.Priority, from(r), r.Table, fs.ErrExist)
		}
	}
	return nil
}

// hasRule says whether a rule is there, whoever made it.
func hasRule(have []rtnl.Rule, want routing.Rule) bool {
	rule := ruleOf(want, "")
	return slices.ContainsFunc(have, func(h rtnl.Rule) bool {
		return h.Family == rule.Family && h.Priority == rule.Priority && h.Src == rule.Src && h.Mark == rule.Mark &&
			h.Table == rule.Table && h.Action == rule.Action && !h.Invert
	})
}
