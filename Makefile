# Isthmus. `make help` lists the targets.

GO      ?= go
TOOL    := $(GO) tool -modfile=.ci/tools.mod
ARCH    := $(shell $(GO) env GOARCH)
VERSION := $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)
AGENT   := adapters/bootstrap/agent
# envd is carried into other machines: static and small.
STATIC  := CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w'

.DEFAULT_GOAL := help

.PHONY: help
help: ## List the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed 's/:.*## /\t/' | expand -t 18

.PHONY: machine
machine: ## Install the system packages that building an image and the tests need
	@.ci/machine

.PHONY: build
build: bin/envd bin/sudo $(AGENT)/envd-linux-$(ARCH).gz $(AGENT)/sudo-linux-$(ARCH).gz ## Build bin/isthmus, bin/envd and bin/sudo
	CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w -X main.version=$(VERSION)' -o bin/isthmus ./cmd/isthmus

# Go decides by itself whether anything changed, so these run each time and cost a second.
.PHONY: bin/envd bin/sudo
bin/envd bin/sudo:
	@mkdir -p bin
	$(STATIC) -o $@ ./cmd/$(@F)

$(AGENT)/%-linux-$(ARCH).gz: bin/%
	gzip -9 -n -c $< > $@

# gVisor's program, for the tests of isolation gvisor. Its module has dependencies that are not ours.
.PHONY: bin/runsc
bin/runsc:
	@mkdir -p bin
	CGO_ENABLED=0 $(GO) build -modfile=.ci/runsc.mod -trimpath -ldflags='-s -w' -o $@ gvisor.dev/gvisor/runsc

.PHONY: generate
generate: ## Regenerate the code beside the specs; leaves a clean tree
	envd/generate.sh
	openapi/generate.sh

.PHONY: lint
lint: ## Formatting, vet, staticcheck, and that generating changes nothing
	@test -z "$$(gofmt -l adapters cmd conformance envd openapi server store translate)" || { gofmt -l adapters cmd conformance envd openapi server store translate; exit 1; }
	$(GO) vet ./...
	$(TOOL) staticcheck ./...
	@.ci/generated

.PHONY: quickstart
quickstart: machine build ## From a bare machine: start Isthmus, run a Python and a JavaScript program through it, stop
	@docs/examples/quickstart.sh

.PHONY: test
test: machine build lint ## The main line: unit, race, wire, and the newest SDKs on the local backend
	@.ci/test main

.PHONY: test-clients
test-clients: machine build ## Clients that know host names only, over TLS
	@.ci/test clients

.PHONY: test-soak
test-soak: machine build bin/runsc ## Kills, leaks, floods, attacks, and gVisor
	@.ci/test soak

.PHONY: test-kubernetes
test-kubernetes: machine build bin/runsc ## A real cluster from nothing: the adapter, the SDKs, and what goes wrong (part of test-soak, shorter)
	@.ci/kubernetes all

.PHONY: bench
bench: machine build ## Measure beside a bare proxy, no isolation, and upstream's envd (UPSTREAM=path, SCALE=short); no gate
	@.ci/bench $(if $(UPSTREAM),--upstream $(UPSTREAM)) $(if $(SCALE),--scale $(SCALE))

.PHONY: clean
clean: ## Remove what was built
	rm -rf bin .tmp $(AGENT)/*.gz
