# make help lists the targets. CI runs .ci/run, which calls these.
GO       ?= go
# Its cache keeps paths as it saw them first, so each checkout has its own.
GOLANGCI := GOLANGCI_LINT_CACHE=$(CURDIR)/bin/lint-cache $(GO) tool -modfile=tools/go.mod golangci-lint
FUZZTIME ?= 10s

.DEFAULT_GOAL := help
.PHONY: help build test race lint fmt generate check fuzz bench vm

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

build: ## build bin/railhead, static
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w' -o bin/ ./cmd/...

test: ## all tests that need neither root nor network nor hardware
	$(GO) test ./...

race: ## the same under the race detector (needs gcc)
	$(GO) test -race ./...

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

bench: ## benchmarks
	$(GO) test -run '^$$' -bench . -benchmem ./...

vm: ## real RDMA and SR-IOV in virtual machines; RUN=regexp for some cases
	RAILHEAD_VM=1 RAILHEAD_VM_RUN='$(RUN)' $(GO) test -v -count=1 -timeout 30m ./test/vm
