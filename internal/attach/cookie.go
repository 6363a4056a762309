package attach

import (
	"fmt"
	"io/fs"

	"railhead/internal/kernel/netns"
	"railhead/internal/kernel/rtnl"
)

// ErrOtherNamespace says that the network namespace at the path of a Plan is not
// the one that it was made for. It is fs.ErrNotExist too.
var ErrOtherNamespace error = otherNamespace{}

type otherNamespace struct{}

func (otherNamespace) Error() string        { return "it is another one now" }
func (otherNamespace) Is(target error) bool { return target == fs.ErrNotExist }

// isNamespace compares a namespace with that of a plan.
func (p *Plan) isNamespace(ns *netns.NS) error {
	if ns.ID() != p.ID {
		return fmt.Errorf("network namespace %s is %v: want %v, for which this was planned: %w", p.NetNS, ns.ID(), p.ID, ErrOtherNamespace)
	}
	return nil
}

// hasCookie compares what a namespace is never called again: the kernel gives
// numbers of namespaces that have ended again at once, and runtimes may give paths
// again. Where the kernel has no cookies, there is nothing to compare.
func (p *Plan) hasCookie(c *rtnl.Client) error {
	cookie, err := c.Cookie()
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", p.NetNS, err)
	}
	if cookie != 0 && p.Cookie != 0 && cookie != p.Cookie {
		return fmt.Errorf("network namespace %s is %v with cookie %d: want %d, for which this was planned: %w", p.NetNS, p.ID, cookie, p.Cookie, ErrOtherNamespace)
	}
	return nil
}
