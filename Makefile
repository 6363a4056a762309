# make help lists the targets. CI runs .ci/run, which calls these.
GO       ?= go
# Its cache keeps paths as it saw them first, so each checkout has its own.
export GOLANGCI_LINT_CACHE ?= $(CURDIR)/bin/lint-cache
GOLANGCI := $(GO) tool -modfile=tools/go.mod golangci-lint
FUZZTIME ?= 20000x
RACE     ?= ./api/... ./cmd/... ./hack/... ./internal/... ./hack/test/api ./hack/test/attachbench ./hack/test/cluster ./hack/test/vm/...

.DEFAULT_GOAL := help
.PHONY: help build test race lint fmt generate check fuzz bench bench-ipam bench-attach model-nightly test-api vm cluster cluster-down cluster-test demo demo-down

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-14s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/railhead, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/ ./cmd/...

test: ## all tests that need neither root nor network nor hardware
	$(GO) test ./...

race: ## the same under the race detector (needs gcc); RACE=packages for some, SHORT=-short for less of what only calculates
	$(GO) test -race -timeout 30m $(SHORT) $(RACE)

lint: ## golangci-lint, pinned in tools/go.mod
	$(GOLANGCI) run ./...

fmt: ## format the code
	$(GOLANGCI) fmt ./...

generate: ## make generated files and go.mod again
	$(GO) generate ./...
	$(GO) mod tidy

check: generate lint test ## what a change must pass: nothing to generate, to lint or to mend
	git diff --exit-code

fuzz: ## fuzz each target for FUZZTIME
	@for pkg in $$($(GO) list ./...); do \
	  for target in $$($(GO) test -list '^Fuzz' $$pkg | grep ^Fuzz); do \
	    echo "$$pkg $$target"; $(GO) test -run '^$$' -fuzz "^$$target$$" -fuzztime $(FUZZTIME) $$pkg || exit 1; \
	  done; done

bench: ## what has a budget, beside its floor or peer: four minutes
	$(GO) run ./hack/bench

bench-ipam: ## addresses on a real API server, beside one map in one object: five minutes; fails where a budget is missed
	RAILHEAD_API=1 RAILHEAD_BENCH=1 $(GO) test -v -count=1 -timeout 30m -run '^TestBudgets$$' ./hack/test/ipambench

bench-attach: ## pods with 8 rails, beside bare netlink calls, plugins of the CNI project and Multus, as root: five minutes once Multus is built; RUN=bare, plugins, pods or multus for a part
	RAILHEAD_BENCH=1 RAILHEAD_BENCH_RUN='$(RUN)' $(GO) test -v -count=1 -timeout 30m -run '^TestBudgets$$' ./hack/test/attachbench

model-nightly: ## the simulation of agents and controllers that give addresses, for an hour
	RAILHEAD_MODEL_TIME=1h $(GO) test -timeout 90m -run TestModel ./internal/ipam/modeltest

test-api: ## objects, admission and the controller on a real API server: eight minutes; RUN=regexp for some, SHORT=-short for fewer kills
	RAILHEAD_API=1 $(GO) test -v -count=1 -timeout 40m -parallel 4 $(SHORT) -run '$(RUN)' ./hack/test/api

vm: ## real RDMA and SR-IOV in virtual machines; RUN=regexp for some cases
	RAILHEAD_VM=1 RAILHEAD_VM_RUN='$(RUN)' $(GO) test -v -count=1 -timeout 30m ./hack/test/vm

cluster: ## a real Kubernetes cluster on this machine; the first time builds Kubernetes
	$(GO) run ./hack/cluster up

cluster-down: ## end it
	$(GO) run ./hack/cluster down

cluster-test: ## tests on real clusters; RUN=regexp for some, SHORT=-short for those that are quick
	RAILHEAD_CLUSTER=1 $(GO) test -v -count=1 -p 1 -timeout 60m $(SHORT) -run '$(RUN)' ./hack/test/cluster ./hack/demo

demo: ## a cluster with agents, pods that use their rails, and Prometheus
	$(GO) run ./hack/demo up

demo-down: ## end it
	$(GO) run ./hack/demo down
