package check

import (
	"fmt"

	"railhead/internal/kernel/sysfs"
)

// memlockLimit finds runtimes whose pods may not register enough memory.
func memlockLimit(n *Node, _ Wishes) []Finding {
	if len(n.ports(anyDevice)) == 0 {
		return nil
	}
	var findings []Finding
	for _, r := range n.Runtimes {
		if r.Memlock == nil || r.Memlock.Soft == sysfs.Infinity {
			continue
		}
		unit := r.unit() + ".service"
		findings = append(findings, Finding{
			Severity: Warning,
			ID:       "memlock-limit",
			Object:   fmt.Sprintf("%s (process %d)", r.Name, r.PID),
			Seen:     fmt.Sprintf("its limit of locked memory is %d bytes, and containers inherit it", r.Memlock.Soft),
			Why:      "RDMA locks the memory it registers: without the capability IPC_LOCK a container fails with \"Cannot allocate memory\"",
			Mend: []string{
				"mkdir -p /etc/systemd/system/" + unit + ".d",
				fmt.Sprintf(`printf '[Service]\nLimitMEMLOCK=infinity\n' > /etc/systemd/system/%s.d/memlock.conf`, unit),
				"systemctl daemon-reload && systemctl restart " + unit,
			},
		})
	}
	return findings
}

func nriOff(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, r := range n.Runtimes {
		if r.NRI {
			continue
		}
		findings = append(findings, Finding{
			Severity: Warning,
			ID:       "nri-off",
			Object:   r.Name,
			Seen:     "its node resource interface (NRI) is off" + fromFile(r.Config),
			Why:      "in exclusive mode a pod's RDMA character devices are known only after its devices were moved; NRI is how they reach the container then",
			Mend:     r.switchOnNRI(),
		})
	}
	return findings
}

func (r Runtime) switchOnNRI() []string {
	if r.Name == crioName {
		return []string{
			`printf '[crio.nri]\nenable_nri = true\n' > ` + crioDropIns + "/99-nri.conf",
			"systemctl restart crio",
		}
	}
	return []string{
		"# in " + r.configFile() + ":",
		fmt.Sprintf("#   [plugins.%q]", nriPlugin),
		"#     disable = false",
		"systemctl restart " + r.unit(),
	}
}

func cdiOff(n *Node, _ Wishes) []Finding {
	var findings []Finding
	for _, r := range n.Runtimes {
		if r.CDI {
			continue
		}
		findings = append(findings, Finding{
			Severity: Info,
			ID:       "cdi-off",
			Object:   r.Name,
			Seen:     "its container device interface (CDI) is off" + fromFile(r.Config),
			Why:      "devices that are allocated by resource claims (DRA) reach containers through CDI",
			Mend: []string{
				"# in " + r.configFile() + ":",
				fmt.Sprintf("#   [plugins.%q]", r.criPlugin()),
				"#     enable_cdi = true",
				"systemctl restart " + r.unit(),
			},
		})
	}
	return findings
}

func fromFile(path string) string {
	if path == "" {
		return ", its default"
	}
	return " in " + path
}
