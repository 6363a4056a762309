package cniserver

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"railhead/internal/cnicall"
)

// Handle does what a call asks. It is a [cnicall.Handler]. Before Run has taken
// up the records of an earlier run, calls wait.
func (s *Server) Handle(ctx context.Context, request cnicall.Request) cnicall.Answer {
	defer s.background.begin()()
	began := time.Now()
	answer := s.handle(ctx, request)
	result := "ok"
	if answer.Error != nil {
		result = resultOf(answer.Error.Code)
	}
	s.metrics.requests.WithLabelValues(verbOf(request.Command), result).Inc()
	if request.Command == cnicall.Add && answer.Error == nil {
		s.metrics.steps.WithLabelValues("whole").Observe(time.Since(began).Seconds())
	}
	return answer
}

func (s *Server) handle(ctx context.Context, request cnicall.Request) cnicall.Answer {
	c, err := parse(request)
	if err != nil {
		return answerOf(err)
	}
	if request.Command == cnicall.Status {
		return answered(nil, s.status(ctx, c))
	}
	select {
	case <-s.started:
	case <-ctx.Done():
		return answerOf(coded(cnicall.CodeTryAgain, fmt.Errorf("the agent has not taken up the records of its last run yet: %w", context.Cause(ctx))))
	}
	return s.serve(ctx, c)
}

// serve answers a call that is not STATUS.
func (s *Server) serve(ctx context.Context, c call) cnicall.Answer {
	if c.Plugin != ownPlugin {
		return s.below(ctx, c)
	}
	switch c.Command {
	case cnicall.Add:
		return answered(s.add(ctx, c))
	case cnicall.Check:
		return answered(nil, s.check(ctx, c))
	case cnicall.Del:
		return answered(nil, s.del(ctx, c))
	case cnicall.GC:
		return answered(nil, s.collect(ctx, c))
	case cnicall.Version:
		return cnicall.Answer{Output: json.RawMessage(`{"cniVersion":"1.1.0","supportedVersions":["0.3.0","0.3.1","0.4.0","1.0.0","1.1.0"]}`)}
	}
	return answerOf(coded(cnicall.CodeEnvironment, fmt.Errorf("CNI_COMMAND: unknown verb %q: want ADD, CHECK, DEL, GC, STATUS or VERSION", c.Command)))
}

func answered(output json.RawMessage, err error) cnicall.Answer {
	if err != nil {
		return answerOf(err)
	}
	return cnicall.Answer{Output: output}
}

// status answers STATUS: whether any pod could be attached. Where it fails, the
// node takes no pod at all: what keeps some from being attached, and may come of a
// pod that has yet to start, is told otherwise; see [need].
func (s *Server) status(ctx context.Context, c call) error {
	if c.Plugin != ownPlugin {
		return nil
	}
	chain, err := s.clusterChain(c)
	if err != nil {
		return coded(cnicall.CodeUnavailable, err)
	}
	for i, p := range chain.Plugins {
		if p.Native {
			continue
		}
		d, err := s.statusCall(c, chain, i)
		if err == nil {
			err = s.config.Delegate.Status(ctx, d)
		}
		if err != nil {
			return fmt.Errorf("the cluster's network %s: %w", chain.Name, err)
		}
	}
	return nil
}

// verbOf keeps metrics to the verbs that there are.
func verbOf(command string) string {
	switch command {
	case cnicall.Add, cnicall.Check, cnicall.Del, cnicall.GC, cnicall.Status, cnicall.Version:
		return command
	}
	return "other"
}

// resultOf is what a code is counted as.
func resultOf(code uint) string {
	switch code {
	case cnicall.CodeTryAgain:
		return "try_again"
	case cnicall.CodeConfig, cnicall.CodeField, cnicall.CodeDecode, cnicall.CodeVersion:
		return "config"
	case cnicall.CodeEnvironment, cnicall.CodeNamespace, cnicall.CodeContainer:
		return "environment"
	case cnicall.CodeUnavailable, cnicall.CodeLimited:
		return "unavailable"
	}
	return "error"
}
