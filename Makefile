# make help lists the targets. CI runs .ci/run, which calls these.
GO       ?= go
# One set of flags, so that all targets share one cache of compiled packages.
export GOFLAGS     ?= -trimpath
export CGO_ENABLED ?= 0
# The linter's cache keeps paths as it saw them first: each checkout has its own.
export GOLANGCI_LINT_CACHE ?= $(CURDIR)/bin/lint-cache
GOLANGCI := GOWORK=off $(GO) tool -modfile=$(CURDIR)/tools/go.mod golangci-lint
FUZZTIME ?= 20000x
RUN      ?= .

.DEFAULT_GOAL := help
.PHONY: help build test race lint fmt format generate check fuzz bench bench-once model test-api vm cluster cluster-down cluster-test kit-test demo demo-down nightly

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/railhead, bin/railhead-cni and bin/railhead-controller, static
	$(GO) build -ldflags='-s -w' -o bin/ ./cmd/...

test: ## the product's tests: no root, network or hardware needed
	$(GO) test ./...

race: ## the same under the race detector (needs gcc); RACE=packages for some
	CGO_ENABLED=1 $(GO) test -race -count=1 -timeout 30m $(or $(RACE),./...)

format: ## list files that gofmt would change, and fail if there are any
	@files=$$(gofmt -l api cmd hack internal) && test -z "$$files" || { echo "gofmt would change:" $$files; exit 1; }

lint: ## golangci-lint, pinned in tools/go.mod
	$(GOLANGCI) run ./...
	cd hack && $(GOLANGCI) run ./...

fmt: ## format the code
	$(GOLANGCI) fmt ./... ./hack/...

generate: ## make generated files and the go.mod files again
	$(GO) generate ./... ./hack/...
	GOWORK=off $(GO) mod tidy
	GOWORK=off $(GO) -C hack mod tidy
	$(GO) work sync

check: format generate lint test ## what a change must pass: nothing to format, to generate, to lint or to mend
	test -z "$$(git status --porcelain)" || { git status; git diff; exit 1; }

fuzz: ## fuzz each target for FUZZTIME
	@pkgs=$$($(GO) list ./... ./hack/...) || exit 1; \
	for pkg in $$pkgs; do \
	  list=$$($(GO) test -list '^Fuzz' $$pkg) || exit 1; \
	  for target in $$(echo "$$list" | grep ^Fuzz); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; done

bench: ## what has a budget, beside its floor or peer, as root: ten minutes; ONLY=regexp for some, STRICT=-strict to fail where one is missed
	RAILHEAD_API=1 $(GO) run ./hack/bench $(STRICT) $(if $(ONLY),-only '$(ONLY)')

bench-once: ## each benchmark for one iteration, as root: do they work?
	$(GO) test -run '^$$' -bench . -benchtime 1x ./...
	RAILHEAD_API=1 $(GO) test -run '^$$' -bench . -benchtime 1x ./hack/bench ./hack/test/attachbench ./hack/test/ipambench

model: ## the simulation of agents and controllers that give addresses, for an hour
	RAILHEAD_MODEL_TIME=1h $(GO) test -count=1 -timeout 90m -run TestModel ./internal/ipam/modeltest

test-api: ## objects, admission, controllers and agents on a real API server, as root; RUN=regexp for some
	RAILHEAD_API=1 $(GO) test -v -count=1 -timeout 60m -run '$(RUN)' ./hack/test/api

vm: ## real RDMA and SR-IOV in virtual machines; RUN=regexp for some cases
	RAILHEAD_VM=1 RAILHEAD_VM_RUN='$(RUN)' $(GO) test -v -count=1 -timeout 60m ./hack/test/vm

cluster: ## a real Kubernetes cluster on this machine; the first time builds Kubernetes
	$(GO) run ./hack/cluster up

cluster-down: ## end it
	$(GO) run ./hack/cluster down

cluster-test: ## the product on a real cluster, as root; RUN=regexp for some
	RAILHEAD_CLUSTER=1 $(GO) test -v -count=1 -timeout 60m -run '$(RUN)' ./hack/test/cluster

kit-test: ## the local cluster itself: its own tests, of no Railhead code
	$(GO) test -count=1 ./hack/cluster/... ./hack/debian/... ./hack/program/...
	RAILHEAD_KIT=1 $(GO) test -v -count=1 -timeout 60m -run '$(RUN)' ./hack/cluster/kittest

demo: ## a cluster with agents, pods that use their rails, and Prometheus
	$(GO) run ./hack/demo up

demo-down: ## end it
	$(GO) run ./hack/demo down

nightly: ## everything that takes long, with a table at the end: some three hours
	./.ci/nightly
