package check

// unreadable lists in one finding what could not be read.
func unreadable(n *Node, _ Wishes) []Finding {
	problems := append(append([]string{}, n.Inventory.Problems...), n.Problems...)
	if len(problems) == 0 {
		return nil
	}
	return []Finding{{
		Severity: Info,
		ID:       "unreadable",
		Object:   "node",
		Seen:     firstFew(problems),
		Why:      "what could not be read was not checked",
		Mend:     []string{"# root, in the host's network and PID namespaces, can read most; railhead devices lists all that could not be read"},
	}}
}
