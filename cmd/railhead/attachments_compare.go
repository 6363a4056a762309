package main

import (
	"context"
	"errors"
	"fmt"
	"os"

	"railhead/internal/attach"
	"railhead/internal/attach/record"
	"railhead/internal/kernel/netns"
)

// comparer begins to compare attachments with the kernel, or says why that
// cannot be.
type comparer func() (compare compareFunc, done func(), err error)

// compareFunc says what became of an attachment, and what is not as it was made.
type compareFunc func(context.Context, record.Attachment) (state string, differences []string)

// runningKernel is that of the node.
func runningKernel() (compareFunc, func(), error) {
	if os.Geteuid() != 0 {
		return nil, nil, errors.New("that takes root, to look into pods")
	}
	attacher, err := attach.New(attach.Config{})
	if err != nil {
		return nil, nil, err
	}
	found, _ := netns.List("/proc") // what is not found is at its path, or gone
	paths := map[netns.ID]string{}
	for _, ns := range found {
		paths[ns.ID] = ns.Path
	}
	compare := func(ctx context.Context, a record.Attachment) (string, []string) {
		plan, ok := reachable(a.Plan, paths)
		if !ok {
			return stateGone, nil
		}
		err := attacher.Check(ctx, plan)
		switch {
		case err == nil:
			return stateOK, nil
		case errors.Is(err, attach.ErrOtherNamespace):
			return stateGone, nil
		}
		return stateDiffers, linesOf(err)
	}
	return compare, func() { _ = attacher.Close() }, nil
}

// reachable is a plan with a path of its namespace as this process sees it, which
// may be another than the agent's; false if the namespace is no more.
func reachable(plan *attach.Plan, paths map[netns.ID]string) (*attach.Plan, bool) {
	if id, err := netns.Stat(plan.NetNS); err == nil && id == plan.ID {
		return plan, true
	}
	path, ok := paths[plan.ID]
	if !ok {
		return nil, false
	}
	moved := *plan
	moved.NetNS = path
	return &moved, true
}

// linesOf are the errors that one joins.
func linesOf(err error) []string {
	if err == nil {
		return nil
	}
	joined, ok := err.(interface{ Unwrap() []error })
	if !ok || errors.Join(joined.Unwrap()...).Error() != err.Error() { // more than joined
		return []string{err.Error()}
	}
	var lines []string
	for _, e := range joined.Unwrap() {
		lines = append(lines, linesOf(e)...)
	}
	return lines
}

// stateCell is a state with how much differs.
func (v *attachmentView) stateCell() string {
	if v.State == stateDiffers {
		return fmt.Sprintf("%s: %d", v.State, len(v.Differences))
	}
	return v.State
}
