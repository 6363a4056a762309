// Package podresources asks the kubelet to which pods it gave devices.
//
// It reads the kubelet's pod-resources socket in the background and answers
// from what it read last. It allocates no device and knows no pod beyond its
// name.
package podresources

import (
	"context"
	"errors"
	"io/fs"
	"log/slog"
	"os"
	"sync/atomic"
	"time"

	"google.golang.org/grpc"
	"google.golang.org/grpc/backoff"
	"google.golang.org/grpc/credentials/insecure"
	api "k8s.io/kubelet/pkg/apis/podresources/v1"
)

// Socket is where the kubelet serves its pod-resources API.
const Socket = "/var/lib/kubelet/pod-resources/kubelet.sock"

const (
	interval   = 10 * time.Second // between questions
	timeout    = 5 * time.Second  // for an answer
	answerMost = 16 << 20         // bytes of an answer, as the kubelet limits it
)

// Client knows which pods hold devices. It is safe for concurrent use.
type Client struct {
	socket string
	log    *slog.Logger
	held   atomic.Pointer[map[string]holder]
}

// New returns a Client of the kubelet at a socket. It knows nothing until Run
// has asked.
func New(socket string, log *slog.Logger) *Client {
	c := &Client{socket: socket, log: log}
	c.held.Store(&map[string]holder{})
	return c
}

// Holder returns the pod that alone was given the function with a PCI address.
// It is not ok where no pod was, or several were.
func (c *Client) Holder(address string) (namespace, name string, ok bool) {
	h, ok := (*c.held.Load())[address]
	return h.namespace, h.name, ok && !h.isShared
}

// Run asks the kubelet every ten seconds until ctx ends, and returns its error.
// A kubelet that is not there is asked again, and what it said last stays true
// meanwhile: while it is away it gives no device to another pod. Opening the
// socket takes the permission to write to it, which is root's.
func (c *Client) Run(ctx context.Context) error {
	conn, err := grpc.NewClient("unix:"+c.socket,
		grpc.WithTransportCredentials(insecure.NewCredentials()),
		grpc.WithDefaultCallOptions(grpc.MaxCallRecvMsgSize(answerMost)),
		grpc.WithConnectParams(grpc.ConnectParams{
			Backoff:           backoff.Config{BaseDelay: time.Second, Multiplier: 1.6, Jitter: 0.2, MaxDelay: interval},
			MinConnectTimeout: timeout,
		}),
		grpc.WithNoProxy())
	if err != nil {
		return err
	}
	defer func() { _ = conn.Close() }() // nothing is under way any more
	return c.run(ctx, api.NewPodResourcesListerClient(conn))
}

func (c *Client) run(ctx context.Context, kubelet api.PodResourcesListerClient) error {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	var before error
	for {
		err := c.poll(ctx, kubelet)
		if ctx.Err() != nil {
			return ctx.Err()
		}
		c.report(err, before)
		before = err
		select {
		case <-ctx.Done():
			return ctx.Err()
		case <-ticker.C:
		}
	}
}

// report logs when the kubelet stops or begins to answer, but not where it has
// no such socket at all.
func (c *Client) report(err, before error) {
	switch {
	case err == nil && before != nil:
		c.log.Info("the kubelet tells again which pods hold devices", "socket", c.socket)
	case err != nil && before == nil && !errors.Is(err, fs.ErrNotExist):
		c.log.Warn("the kubelet does not tell which pods hold devices", "socket", c.socket, "error", err)
	}
}

// poll asks once and keeps the answer. The error is fs.ErrNotExist where there
// is no socket.
func (c *Client) poll(ctx context.Context, kubelet api.PodResourcesListerClient) error {
	if _, err := os.Stat(c.socket); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	answer, err := kubelet.List(ctx, &api.ListPodResourcesRequest{}, grpc.WaitForReady(true))
	if err != nil {
		return err
	}
	held := holders(answer)
	c.held.Store(&held)
	return nil
}
