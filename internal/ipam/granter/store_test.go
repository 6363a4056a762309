package granter

import (
	"context"
	"errors"
	"strconv"
	"sync"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"railhead/api/railhead/v1alpha1"
)

var errLost = errors.New("connection reset")

// store is the objects of a cluster in memory.
type store struct {
	mu      sync.Mutex // of all but fault, which may call back
	version int64
	ledgers map[string]*v1alpha1.PoolLedger
	leases  map[string]*v1alpha1.AddressLease

	// fault answers a write before (false) and after (true) it is done.
	fault  func(op, name string, done bool) error
	writes map[string]int
}

func newStore() *store {
	return &store{ledgers: map[string]*v1alpha1.PoolLedger{}, leases: map[string]*v1alpha1.AddressLease{}, writes: map[string]int{}}
}

func (s *store) next() string {
	s.version++
	return strconv.FormatInt(s.version, 10)
}

func (s *store) do(op, name string, write func() error) error {
	if s.fault != nil {
		if err := s.fault(op, name, false); err != nil {
			return err
		}
	}
	if err := s.locked(op, write); err != nil {
		return err
	}
	if s.fault != nil {
		return s.fault(op, name, true)
	}
	return nil
}

func (s *store) locked(op string, write func() error) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := write(); err != nil {
		return err
	}
	s.writes[op]++
	return nil
}

func resource(name string) schema.GroupResource {
	return schema.GroupResource{Group: "railhead.io", Resource: name}
}

func conflict(name string) error {
	return apierrors.NewConflict(resource("objects"), name, errors.New("the object has been modified"))
}

func (s *store) Ledgers(context.Context) ([]v1alpha1.PoolLedger, error) {
	if s.fault != nil {
		if err := s.fault("list", "", false); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	var all []v1alpha1.PoolLedger
	for _, l := range s.ledgers {
		all = append(all, *l.DeepCopy())
	}
	return all, nil
}

func (s *store) Ledger(_ context.Context, name string) (*v1alpha1.PoolLedger, error) {
	if s.fault != nil {
		if err := s.fault("read", name, false); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.ledgers[name]; l != nil {
		return l.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource("poolledgers"), name)
}

func (s *store) CreateLedger(_ context.Context, l *v1alpha1.PoolLedger) (answer *v1alpha1.PoolLedger, err error) {
	err = s.do("create", l.Name, func() error {
		if s.ledgers[l.Name] != nil {
			return apierrors.NewAlreadyExists(resource("poolledgers"), l.Name)
		}
		answer = l.DeepCopy()
		answer.ResourceVersion = s.next()
		answer.UID = types.UID("ledger-" + answer.ResourceVersion)
		s.ledgers[l.Name] = answer.DeepCopy()
		return nil
	})
	return answer, err
}

func (s *store) UpdateLedger(_ context.Context, l *v1alpha1.PoolLedger) (answer *v1alpha1.PoolLedger, err error) {
	err = s.do("ledger", l.Name, func() error {
		switch old := s.ledgers[l.Name]; {
		case old == nil:
			return apierrors.NewNotFound(resource("poolledgers"), l.Name)
		case old.ResourceVersion != l.ResourceVersion:
			return conflict(l.Name)
		}
		answer = l.DeepCopy()
		answer.ResourceVersion = s.next()
		s.ledgers[l.Name] = answer.DeepCopy()
		return nil
	})
	return answer, err
}

func (s *store) DeleteLedger(_ context.Context, l *v1alpha1.PoolLedger) error {
	return s.do("delete", l.Name, func() error {
		switch old := s.ledgers[l.Name]; {
		case old == nil:
			return apierrors.NewNotFound(resource("poolledgers"), l.Name)
		case old.ResourceVersion != l.ResourceVersion:
			return conflict(l.Name)
		}
		delete(s.ledgers, l.Name)
		return nil
	})
}

func (s *store) Lease(_ context.Context, name string) (*v1alpha1.AddressLease, error) {
	if s.fault != nil {
		if err := s.fault("lease", name, false); err != nil {
			return nil, err
		}
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if l := s.leases[name]; l != nil {
		return l.DeepCopy(), nil
	}
	return nil, apierrors.NewNotFound(resource("addressleases"), name)
}

func (s *store) UpdateLeaseStatus(_ context.Context, l *v1alpha1.AddressLease) (answer *v1alpha1.AddressLease, err error) {
	err = s.do("status", l.Name, func() error {
		old := s.leases[l.Name]
		switch {
		case old == nil:
			return apierrors.NewNotFound(resource("addressleases"), l.Name)
		case old.ResourceVersion != l.ResourceVersion:
			return conflict(l.Name)
		}
		answer = old.DeepCopy()
		answer.Status = *l.Status.DeepCopy()
		answer.ResourceVersion = s.next()
		s.leases[l.Name] = answer.DeepCopy()
		return nil
	})
	return answer, err
}

// spec is a write of a node's agent.
func (s *store) spec(name string, change func(*v1alpha1.AddressLease)) {
	l := s.leases[name]
	if l == nil {
		l = &v1alpha1.AddressLease{}
		l.Name, l.UID = name, types.UID("lease-"+s.next())
		l.Spec.NodeUID = types.UID("uid-" + name)
	}
	l = l.DeepCopy()
	change(l)
	l.Generation++
	l.ResourceVersion = s.next()
	s.leases[name] = l
}
