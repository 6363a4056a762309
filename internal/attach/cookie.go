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

// checkNamespace compares a namespace with that of a plan.
func (p *Plan) checkNamespace(ns *netns.NS) error {
	if ns.ID() != p.ID {
		return fmt.Errorf("network namespace %s is %v: want %v, for which this was planned: %w", p.NetNS, ns.ID(), p.ID, ErrOtherNamespace)
	}
	return nil
}

// checkCookie compares its cookie with that of a plan: the kernel gives the numbers of
// namespaces that have ended to others at once, and runtimes may do so with paths.
// Where the kernel has no cookies, there is nothing to compare.
func (p *Plan) checkCookie(c *rtnl.Client) error {
	cookie, err := c.Cookie()
	if err != nil {
		return fmt.Errorf("network namespace %s: %w", p.NetNS, err)
	}
	if cookie != 0 && p.Cookie != 0 && cookie != p.Cookie {
		return fmt.Errorf("network namespace %s is %v with cookie %d: want %d, for which this was planned: %w", p.NetNS, p.ID, cookie, p.Cookie, ErrOtherNamespace)
	}
	return nil
}
