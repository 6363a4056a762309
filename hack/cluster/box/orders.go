package box

import (
	"context"
	"os"
	"sync"
)

// orders is the driver's end of a machine's order socket: it matches replies
// with orders.
type orders struct {
	wire  *wire
	first chan reply // what the machine says of its own accord: that it is ready

	mu      sync.Mutex
	last    uint64
	waiting map[uint64]chan reply
	ended   chan struct{}
}

func newOrders(w *wire) *orders {
	o := &orders{wire: w, first: make(chan reply, 1), waiting: map[uint64]chan reply{}, ended: make(chan struct{})}
	go o.receive()
	return o
}

// receive hands out replies until the machine ends.
func (o *orders) receive() {
	defer close(o.ended)
	defer func() { _ = o.wire.conn.Close() }()
	for {
		var r reply
		files, err := o.wire.receive(&r)
		if err != nil {
			return
		}
		closeFiles(files)
		if r.ID == 0 {
			o.first <- r
			continue
		}
		o.mu.Lock()
		if answer, ok := o.waiting[r.ID]; ok {
			answer <- r
			delete(o.waiting, r.ID)
		}
		o.mu.Unlock()
	}
}

// ready waits until the machine takes orders.
func (o *orders) ready(ctx context.Context) error {
	_, err := await(ctx, o.ended, o.first)
	return err
}

// post sends an order, and returns its ID and where its reply will come. Files
// are copied to the machine; the caller closes its own.
func (o *orders) post(what order, files ...*os.File) (uint64, <-chan reply, error) {
	answer := make(chan reply, 1)
	o.mu.Lock()
	o.last++
	what.ID = o.last
	o.waiting[what.ID] = answer
	o.mu.Unlock()
	if err := o.wire.send(what, files...); err != nil {
		o.forget(what.ID)
		select {
		case <-o.ended:
			return 0, nil, errEnded
		default:
			return 0, nil, err
		}
	}
	return what.ID, answer, nil
}

func (o *orders) forget(id uint64) {
	o.mu.Lock()
	defer o.mu.Unlock()
	delete(o.waiting, id)
}

// call sends an order and waits for its reply, whose error it returns.
func (o *orders) call(ctx context.Context, what order, files ...*os.File) (reply, error) {
	id, answer, err := o.post(what, files...)
	if err != nil {
		return reply{}, err
	}
	r, err := await(ctx, o.ended, answer)
	if ctx.Err() != nil {
		o.forget(id)
	}
	return r, err
}

// await waits for a reply and returns it with the error in it.
func await(ctx context.Context, ended <-chan struct{}, answer <-chan reply) (reply, error) {
	select {
	case r := <-answer:
		return r, r.err()
	case <-ctx.Done():
		return reply{}, ctx.Err()
	case <-ended:
	}
	select {
	case r := <-answer: // its last words
		return r, r.err()
	default:
		return reply{}, errEnded
	}
}

// err is the error that the reply carries.
func (r *reply) err() error {
	if r.Error == nil {
		return nil
	}
	return r.Error
}
