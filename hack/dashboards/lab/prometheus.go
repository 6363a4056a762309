package lab

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"time"

	"railhead/internal/loopback"
)

// Prometheus is a running one, on loopback.
type Prometheus struct {
	url  string
	cmd  *exec.Cmd
	said bytes.Buffer
	done chan error
}

// startup is how long Prometheus may take to be ready, on a machine that has other
// work too.
const startup = 2 * time.Minute

// StartPrometheus starts the program with its configuration and its data, which
// may be there already, in a directory. It returns when Prometheus answers.
func StartPrometheus(ctx context.Context, program, dir, config string) (*Prometheus, error) {
	file := filepath.Join(dir, "prometheus.yaml")
	if err := os.WriteFile(file, []byte(config), 0o600); err != nil {
		return nil, err
	}
	address, keep, err := loopback.Reserve()
	if err != nil {
		return nil, err
	}
	defer keep.Close()
	p := &Prometheus{url: "http://" + address, done: make(chan error, 1)}
	p.cmd = exec.Command(program, //nolint:noctx // it is ended by Close, which waits for it
		"--config.file="+file, "--storage.tsdb.path="+filepath.Join(dir, "data"), "--storage.tsdb.retention.time=100y",
		"--web.listen-address="+address, "--log.level=error")
	p.cmd.Stderr = &p.said
	if err := p.cmd.Start(); err != nil {
		return nil, err
	}
	go func() { p.done <- p.cmd.Wait() }()
	if err := p.ready(ctx); err != nil {
		return nil, errors.Join(err, p.Close())
	}
	return p, nil
}

func (p *Prometheus) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, startup)
	defer cancel()
	again := time.NewTicker(100 * time.Millisecond)
	defer again.Stop()
	for {
		if _, err := p.get(ctx, "/-/ready", nil); err == nil {
			return nil
		}
		select {
		case err := <-p.done:
			p.done <- err
			return fmt.Errorf("Prometheus ended: %w: %s", err, bytes.TrimSpace(p.said.Bytes()))
		case <-ctx.Done():
			return fmt.Errorf("Prometheus is not ready: %w", ctx.Err())
		case <-again.C:
		}
	}
}

// Close ends it.
func (p *Prometheus) Close() error {
	if err := p.cmd.Process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return err
	}
	<-p.done // killed is how it ends
	return nil
}

// Series is one series of an answer.
type Series struct {
	Labels map[string]string
	Points []Point
}

// Point is a value at a time.
type Point struct {
	Time  time.Time
	Value float64
}

// Query asks for the values at a moment.
func (p *Prometheus) Query(ctx context.Context, query string, at time.Time) ([]Series, error) {
	return p.query(ctx, "/api/v1/query", url.Values{"query": {query}, "time": {timestamp(at)}})
}

func timestamp(t time.Time) string {
	return strconv.FormatFloat(float64(t.UnixMilli())/1000, 'f', 3, 64)
}

func (p *Prometheus) query(ctx context.Context, path string, values url.Values) ([]Series, error) {
	body, err := p.get(ctx, path, values)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", values.Get("query"), err)
	}
	var answer struct {
		Data struct {
			Result []struct {
				Metric map[string]string `json:"metric"`
				Value  *sample           `json:"value"`
				Values []sample          `json:"values"`
			} `json:"result"`
		} `json:"data"`
	}
	if err := json.Unmarshal(body, &answer); err != nil {
		return nil, fmt.Errorf("%s: %w", values.Get("query"), err)
	}
	var all []Series
	for _, r := range answer.Data.Result {
		s := Series{Labels: r.Metric}
		if r.Value != nil {
			r.Values = append(r.Values, *r.Value)
		}
		for _, v := range r.Values {
			s.Points = append(s.Points, Point(v))
		}
		all = append(all, s)
	}
	return all, nil
}

// sample is a Point as Prometheus writes it: [1770000000.5, "1.5"].
type sample Point

// UnmarshalJSON implements [json.Unmarshaler].
func (s *sample) UnmarshalJSON(text []byte) error {
	var at float64
	var value string
	if err := json.Unmarshal(text, &[]any{&at, &value}); err != nil {
		return err
	}
	v, err := strconv.ParseFloat(value, 64)
	*s = sample{Time: time.UnixMilli(int64(at * 1000)), Value: v}
	return err
}

func (p *Prometheus) get(ctx context.Context, path string, values url.Values) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, p.url+path+"?"+values.Encode(), http.NoBody)
	if err != nil {
		return nil, err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, err
	}
	defer answer.Body.Close()
	var body bytes.Buffer
	if _, err := body.ReadFrom(answer.Body); err != nil {
		return nil, err
	}
	if answer.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("Prometheus answered %s: %s", answer.Status, bytes.TrimSpace(body.Bytes()))
	}
	return body.Bytes(), nil
}
