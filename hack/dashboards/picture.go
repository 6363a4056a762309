package main

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"time"

	"railhead/hack/dashboards/boards"
	"railhead/hack/dashboards/lab"
	"railhead/hack/dashboards/picture"
	"railhead/internal/counters"
)

// What the pictures show: an hour of four nodes, sampled as a Prometheus would.
const (
	pictureRange = time.Hour
	pictureStep  = 15 * time.Second
	// pictureAhead lets the past end when Prometheus has loaded it.
	pictureAhead = 45 * time.Second
)

// sketch says where things are that it takes to make pictures.
type sketch struct {
	scenarios, rules               string // directories
	chromium, prometheus, promtool string // programs
}

// chosen are the variables of the dashboards in the pictures: the sick node, a
// pod on it, and the job that has pods on three of the nodes.
func chosen(file string) map[string]string {
	return map[string]map[string]string{
		"rdma-node":     {"node": "gpu-a18"},
		"rdma-pod":      {"namespace": "research", "pod": "llama-pretrain-worker-4"},
		"rdma-workload": {"kind": "PyTorchJob", "namespace": "research", "name": "llama-pretrain"},
	}[file]
}

// pictures draws each dashboard into a directory.
func (s *sketch) pictures(ctx context.Context, dir string) (err error) {
	work, err := os.MkdirTemp("", "railhead-pictures-")
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(work)) }()
	prometheus, err := s.cluster(ctx, work)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, prometheus.Close()) }()
	at, err := alerting(ctx, prometheus)
	if err != nil {
		return err
	}
	for _, board := range boards.All() {
		dashboard, err := board.Dashboard(boards.Help(counters.Families()))
		if err != nil {
			return err
		}
		view := picture.View{Prometheus: prometheus, At: at, Range: pictureRange, Step: pictureStep, Values: chosen(board.File)}
		page, height, err := picture.Page(ctx, &board, dashboard, view)
		if err != nil {
			return err
		}
		image, err := picture.Render(ctx, s.chromium, page, height)
		if err != nil {
			return err
		}
		name := "dashboard-" + strings.TrimPrefix(board.File, "rdma-") + ".png"
		if err := os.WriteFile(filepath.Join(dir, name), image, 0o644); err != nil {
			return err
		}
	}
	return nil
}

// cluster simulates the nodes and starts a Prometheus that has their past, and
// evaluates the rules at present.
func (s *sketch) cluster(ctx context.Context, work string) (*lab.Prometheus, error) {
	var members []lab.Member
	for _, name := range []string{"healthy", "sick-rail", "storm", "shared"} {
		members = append(members, lab.Member{Scenario: filepath.Join(s.scenarios, name+".yaml")})
	}
	steps := int(pictureRange/pictureStep) + 1
	h := lab.NewHistory(time.Unix(0, 0).Add(1e6*time.Hour), pictureStep, nil)
	if err := lab.Simulate(ctx, members, h, steps); err != nil {
		return nil, err
	}
	h.Start = time.Now().Add(pictureAhead - pictureRange)
	if err := h.Backfill(ctx, s.promtool, work); err != nil {
		return nil, err
	}
	for _, name := range []string{"recording.yaml", "alerts.yaml"} {
		text, err := os.ReadFile(filepath.Join(s.rules, name))
		if err != nil {
			return nil, err
		}
		// What was so for long cannot be known of one moment: alerts fire at once.
		text = regexp.MustCompile(`for: \d+m`).ReplaceAll(text, []byte("for: 0s"))
		if err := os.WriteFile(filepath.Join(work, name), text, 0o600); err != nil {
			return nil, err
		}
	}
	return lab.StartPrometheus(ctx, s.prometheus, work, "global: {evaluation_interval: 2s}\nrule_files: [recording.yaml, alerts.yaml]\n")
}

// alerting waits until the rules were evaluated and returns when that was.
func alerting(ctx context.Context, prometheus *lab.Prometheus) (time.Time, error) {
	ctx, cancel := context.WithTimeout(ctx, time.Minute)
	defer cancel()
	again := time.NewTicker(500 * time.Millisecond)
	defer again.Stop()
	for {
		now := time.Now()
		firing, err := prometheus.Query(ctx, `ALERTS{alertname="RDMAPHYErrors"}`, now)
		if err != nil || len(firing) > 0 {
			return now, err
		}
		select {
		case <-ctx.Done():
			return now, fmt.Errorf("no alert fires: %w", ctx.Err())
		case <-again.C:
		}
	}
}
