package ipam

import (
	"errors"
	"fmt"
	"iter"
	"maps"
	"net/netip"
	"slices"
	"sort"
	"strings"

	"go4.org/netipx"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
)

// ErrHeld is the error of giving what somebody has.
var ErrHeld = errors.New("is held")

// Ledger is the books of one part: runs in order. What no run names is free.
// It is not safe for use while it is changed; a Clone may be.
type Ledger struct {
	Meta    metav1.ObjectMeta
	Pool    string
	PoolUID types.UID
	Part    netipx.IPRange
	Epoch   int64

	runs []Run
}

// NewLedger is an empty ledger that was never written.
func NewLedger(name string, pool Pool, part netipx.IPRange) *Ledger {
	return &Ledger{
		Meta: metav1.ObjectMeta{Name: name, Finalizers: []string{v1alpha1.Finalizer}},
		Pool: pool.Name, PoolUID: pool.UID, Part: part,
	}
}

// LedgerOf parses an object. What it cannot parse makes the whole unusable:
// a run that is left out would be free.
func LedgerOf(o *v1alpha1.PoolLedger) (*Ledger, error) {
	part, err := ParseRange(o.Spec.Part)
	if err != nil {
		return nil, fmt.Errorf("ledger %s: spec.part: %w", o.Name, err)
	}
	l := &Ledger{
		Meta: *o.ObjectMeta.DeepCopy(), Pool: o.Spec.Pool, PoolUID: o.Spec.PoolUID, Part: part,
		Epoch: o.Spec.Epoch, runs: make([]Run, len(o.Spec.Runs)),
	}
	for i := range o.Spec.Runs {
		if l.runs[i], err = runOf(&o.Spec.Runs[i]); err != nil {
			return nil, fmt.Errorf("ledger %s: spec.runs[%d]: %w", o.Name, i, err)
		}
	}
	return l, l.Validate()
}

// Object is the ledger as the API server has it.
func (l *Ledger) Object() *v1alpha1.PoolLedger {
	o := &v1alpha1.PoolLedger{
		TypeMeta:   metav1.TypeMeta{APIVersion: v1alpha1.GroupVersion.String(), Kind: "PoolLedger"},
		ObjectMeta: *l.Meta.DeepCopy(),
		Spec:       v1alpha1.PoolLedgerSpec{Pool: l.Pool, PoolUID: l.PoolUID, Part: FormatRange(l.Part), Epoch: l.Epoch},
	}
	if len(l.runs) > 0 {
		o.Spec.Runs = make([]v1alpha1.Run, len(l.runs))
	}
	for i := range l.runs {
		o.Spec.Runs[i] = l.runs[i].object()
	}
	return o
}

// Clone is a copy that changes on its own.
func (l *Ledger) Clone() *Ledger {
	c := *l
	c.Meta = *l.Meta.DeepCopy()
	c.runs = slices.Clone(l.runs)
	return &c
}

// Validate says what is wrong with the books: runs out of order, outside of
// the part, from the future, without a holder.
func (l *Ledger) Validate() error {
	var before netip.Addr
	for i := range l.runs {
		r := &l.runs[i]
		err := r.check()
		switch {
		case before.IsValid() && r.From().Compare(before) <= 0:
			err = fmt.Errorf("is not behind %s: want runs in order that do not overlap", before)
		case !inside(r.IPRange, l.Part):
			err = fmt.Errorf("is not within the part %s", FormatRange(l.Part))
		case r.Epoch > l.Epoch:
			err = fmt.Errorf("has epoch %d, and the ledger %d: want none from later writes", r.Epoch, l.Epoch)
		}
		if err != nil {
			return fmt.Errorf("ledger %s: run %s %w", l.Meta.Name, FormatRange(r.IPRange), err)
		}
		before = r.To()
	}
	return nil
}

// Gives is what the ledger says that it gives; all of it where that cannot be read.
func (l *Ledger) Gives() []netipx.IPRange {
	text := l.Meta.Annotations[v1alpha1.AnnotationGives]
	if text == "" {
		return nil
	}
	set, err := ParseRanges(strings.Split(text, ","))
	if err != nil {
		return []netipx.IPRange{l.Part}
	}
	return set.Ranges()
}

// Len is how many runs there are.
func (l *Ledger) Len() int { return len(l.runs) }

// Runs is all runs in order. They may not be changed, nor the ledger meanwhile.
func (l *Ledger) Runs() iter.Seq[Run] { return slices.Values(l.runs) }

// At is the run that an address is in.
func (l *Ledger) At(addr netip.Addr) (Run, bool) {
	i := l.from(addr)
	if i < len(l.runs) && l.runs[i].Contains(addr) {
		return l.runs[i], true
	}
	return Run{}, false
}

// Held is what is not free.
func (l *Ledger) Held() *netipx.IPSet { return SetOf(l.HeldList()) }

// HeldList is what is not free, in order.
func (l *Ledger) HeldList() []netipx.IPRange {
	return l.list(func(*Run) bool { return true })
}

// HeldBy is what a node has, alone or beside another one.
func (l *Ledger) HeldBy(node string) *netipx.IPSet {
	return SetOf(l.list(func(r *Run) bool { return r.On(node) }))
}

// list is the addresses of some runs, in order and joined.
func (l *Ledger) list(is func(*Run) bool) []netipx.IPRange {
	out := make([]netipx.IPRange, 0, len(l.runs))
	for i := range l.runs {
		if is(&l.runs[i]) {
			out = append(out, l.runs[i].IPRange)
		}
	}
	return Merged(out)
}

// from is the place of the first run that ends at an address or behind it.
func (l *Ledger) from(addr netip.Addr) int {
	return sort.Search(len(l.runs), func(i int) bool { return !l.runs[i].To().Less(addr) })
}

func inside(r, of netipx.IPRange) bool { return of.Contains(r.From()) && of.Contains(r.To()) }

// Within is the runs that overlap a range, whole, in order.
func (l *Ledger) Within(r netipx.IPRange) iter.Seq[Run] {
	return func(yield func(Run) bool) {
		for i := l.from(r.From()); i < len(l.runs) && l.runs[i].Overlaps(r); i++ {
			if !yield(l.runs[i]) {
				return
			}
		}
	}
}

// Alike says whether two ledgers say the same but for their epochs and versions.
func (l *Ledger) Alike(o *Ledger) bool {
	return l.Pool == o.Pool && l.PoolUID == o.PoolUID && l.Part == o.Part && slices.Equal(l.runs, o.runs) &&
		maps.Equal(l.Meta.Annotations, o.Meta.Annotations) && slices.Equal(l.Meta.Finalizers, o.Meta.Finalizers)
}
