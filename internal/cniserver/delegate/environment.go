package delegate

import (
	"cmp"
	"strings"
)

// programs is where plugins look for programs where the runtime does not say.
const programs = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"

// environment is all that a plugin finds in its environment.
type environment []string

// AsEnv implements [invoke.CNIArgs].
func (e environment) AsEnv() []string { return e }

// environment is that of a call: the CNI's variables, without those that it has
// no value for, and the runtime's PATH by which plugins find programs such as iptables.
func (d *Delegate) environment(command string, c Call) environment {
	env := environment{"PATH=" + cmp.Or(c.Programs, programs)}
	for _, v := range []struct{ name, value string }{
		{"CNI_COMMAND", command},
		{"CNI_CONTAINERID", c.ContainerID},
		{"CNI_NETNS", c.NetNS},
		{"CNI_IFNAME", c.IfName},
		{"CNI_ARGS", c.Args},
		{"CNI_PATH", strings.Join(d.path(c), ":")},
	} {
		if v.value != "" {
			env = append(env, v.name+"="+v.value)
		}
	}
	return env
}
