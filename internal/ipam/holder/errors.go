package holder

import (
	"errors"
	"fmt"
	"strings"
)

// ErrNotReady is of a holder whose journal was lost: it assigns nothing before
// the controller has heard of it, and before it was told what is in use.
var ErrNotReady = errors.New("addresses are not ready")

// ErrDisk is of a journal that cannot be written.
var ErrDisk = errors.New("the journal of addresses cannot be written")

// ShortError says that a pod got nothing because some address lacks.
type ShortError struct {
	// Waiting says that more may come: ask again after the next change of grants.
	Waiting bool
	Pools   []PoolShort
}

// PoolShort is a pool without a free address for an interface.
type PoolShort struct{ Interface, Pool, Reason string }

// Error returns all pools and their reasons.
func (e *ShortError) Error() string {
	parts := make([]string, len(e.Pools))
	for i, p := range e.Pools {
		parts[i] = fmt.Sprintf("interface %s: pool %s: %s", p.Interface, p.Pool, p.Reason)
	}
	return "no address: " + strings.Join(parts, "; ")
}
