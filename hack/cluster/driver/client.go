package driver

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"net/http"
	"os"
	"strings"
	"time"

	"golang.org/x/sys/unix"

	"railhead/hack/program"
)

// ErrNotRunning is what orders to a directory without a cluster end with. One
// that is still starting takes no orders.
var ErrNotRunning = errors.New("no cluster is up there")

// errHungUp is what an order ends with when the driver does before it has
// answered.
var errHungUp = errors.New("the cluster ended meanwhile")

// Give sends an order to the cluster that runs in a directory and returns what
// it tells.
func (d Dir) Give(ctx context.Context, o Order) (string, error) {
	body, err := json.Marshal(o)
	if err != nil {
		return "", err
	}
	var out outcome
	err = d.ask(ctx, http.MethodPost, "/orders", body, &out)
	return out.Said, err
}

// Status asks the cluster that runs in a directory how it is.
func (d Dir) Status(ctx context.Context) (*Status, error) {
	var s Status
	if err := d.ask(ctx, http.MethodGet, "/status", nil, &s); err != nil {
		return nil, err
	}
	return &s, nil
}

// Down ends the cluster of a directory, also one that is only starting, and
// removes everything of it and what earlier ones may have left. A driver that
// has not ended when its patience is over is killed; its machines end with it.
func (d Dir) Down(ctx context.Context) error {
	for began := time.Now(); ; {
		err := d.Sweep()
		if !errors.Is(err, ErrInUse) {
			return err
		}
		signal := unix.SIGTERM
		if time.Since(began) > endPatience {
			signal = unix.SIGKILL
		}
		if err := d.signal(signal); err != nil {
			return err
		}
		select {
		case <-ctx.Done():
			return fmt.Errorf("%w: %w", ctx.Err(), err)
		case <-time.After(downPause):
		}
	}
}

// How long a driver may take to end its machines, and the time between two
// looks at whether it has.
const (
	endPatience = 30 * time.Second
	downPause   = 50 * time.Millisecond
)

// ask makes one request of the driver.
func (d Dir) ask(ctx context.Context, method, path string, body []byte, into any) error {
	request, err := http.NewRequestWithContext(ctx, method, "http://driver"+path, bytes.NewReader(body))
	if err != nil {
		return err
	}
	transport := &http.Transport{DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
		return new(net.Dialer).DialContext(ctx, "unix", d.Socket())
	}}
	defer transport.CloseIdleConnections()
	response, err := (&http.Client{Transport: transport}).Do(request)
	if err != nil {
		return d.unanswered(ctx, err)
	}
	defer response.Body.Close()
	data, err := io.ReadAll(response.Body)
	if err != nil {
		return d.unanswered(ctx, err)
	}
	if response.StatusCode == http.StatusOK {
		return json.Unmarshal(data, into)
	}
	var out outcome
	if err := json.Unmarshal(data, &out); err != nil {
		return fmt.Errorf("%s: the driver answers %s: %s", d.Socket(), response.Status, bytes.TrimSpace(data))
	}
	return errors.New(out.Error)
}

// unanswered says why there is no answer.
func (d Dir) unanswered(ctx context.Context, err error) error {
	var network *net.OpError
	switch {
	case ctx.Err() != nil:
		return err
	case errors.Is(err, fs.ErrNotExist), errors.Is(err, unix.ECONNREFUSED):
		return fmt.Errorf("%s: %w%s", d, ErrNotRunning, d.lastWords())
	case errors.As(err, &network) && network.Op == "dial":
		return err
	}
	return fmt.Errorf("%s: %w: %w%s", d, errHungUp, err, d.lastWords())
}

// lastLines is how much of its log a driver is quoted with.
const lastLines = 5

// lastWords are those of a driver that ended by itself, for an error.
func (d Dir) lastWords() string {
	log, err := os.ReadFile(d.DriverLog())
	if err != nil || len(bytes.TrimSpace(log)) == 0 {
		return ""
	}
	return fmt.Sprintf("; %s ends with:\n%s", d.DriverLog(), strings.TrimSpace(program.LastLines(string(log), lastLines)))
}
