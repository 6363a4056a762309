package cnicall

import (
	"context"
	"errors"
	"fmt"
	"net"
	"time"
)

// ErrAway is of an agent that nobody could reach: the call has not begun.
var ErrAway = errors.New("the agent does not answer")

// Call makes one call at the socket of the agent and returns its answer, which
// may be an error of its own. It waits no longer than the context.
//
// An error that is ErrAway says that nothing was done. After any other, the
// agent may have done all, some or nothing, and undoes what its caller did not
// wait for.
func Call(ctx context.Context, socket string, request Request) (Answer, error) {
	var left time.Duration
	deadline, limited := ctx.Deadline()
	if limited {
		left = max(time.Until(deadline), time.Millisecond)
	}
	message, err := encodeRequest(request, left)
	if err != nil {
		return Answer{}, err
	}
	conn, err := (&net.Dialer{}).DialContext(ctx, "unix", socket)
	if err != nil {
		return Answer{}, fmt.Errorf("%w: %w", ErrAway, err)
	}
	defer conn.Close()
	// Whatever ends the context ends reading and writing.
	stop := context.AfterFunc(ctx, func() { _ = conn.SetDeadline(time.Unix(1, 0)) })
	defer stop()

	// The agent may refuse us without reading on, and says why all the same.
	_, writeErr := conn.Write(message)
	body, err := readMessage(conn)
	switch {
	case err == nil:
		return decodeAnswer(body)
	case ctx.Err() != nil:
		return Answer{}, fmt.Errorf("%s: no answer in time: %w", socket, context.Cause(ctx))
	case errors.Is(err, ErrProtocol):
		return Answer{}, fmt.Errorf("%s: %w", socket, err)
	default:
		return Answer{}, fmt.Errorf("%s: the agent ended without an answer: %w", socket, errors.Join(writeErr, err))
	}
}
