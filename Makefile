# SPDX-License-Identifier: Apache-2.0
# Every target that a person or CI runs; `make help` lists them. CI calls these and nothing else.

SHELL       := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
# The rigs move real traffic and are measured against deadlines: never two of them at once, whatever -j says.
.NOTPARALLEL:

GO      ?= go
BIN     := $(CURDIR)/bin
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)

RIGS := smoke trace crossnode dualstack uplinks fib coldneigh coexist restart mtu flood churn memory
CLUSTER_RIGS := cluster-faults cluster cluster-scale deploy

CLANG_FORMAT  := clang-format-19
GOLANGCI_LINT := $(BIN)/golangci-lint
ACTIONLINT    := $(BIN)/actionlint
GENERATED     := src/datapath/bpfobj
GO_DIRS       := $(wildcard src harness rigs)
C_FILES       := $(shell find bpf -name '*.[ch]' -not -path 'bpf/include/*' 2>/dev/null)

# The rigs and the demo run the binary under test, not one they build themselves.
export BEEP_BIN := $(BIN)/beep

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-zA-Z_%-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' $(firstword $(MAKEFILE_LIST))
	@echo "  rigs: $(addprefix rig-,$(RIGS) $(CLUSTER_RIGS))"

.PHONY: deps
deps: ## install what builds and tests need, from Debian's archive (quick when all is there)
	@ci/install-deps

# The version comes from git through -ldflags: -buildvcs would fail in a checkout that another user owns.
.PHONY: build
build: ## build bin/beep and bin/beep-controller (static, reproducible, version from git)
	CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' -o $(BIN)/ \
		./src/cmd/beep ./src/cmd/beep-controller

# The name by which a node that imports the tar archive knows the image; deploy/base asks for it.
IMAGE := localhost/beep:v0
IMAGE_DIR := $(CURDIR)/build/image

.PHONY: image
image: ## build the container image without a container engine, amd64 and arm64: build/image/oci, beep.tar, bills of materials
	for arch in amd64 arm64; do \
		CGO_ENABLED=0 GOARCH=$$arch $(GO) build -trimpath -buildvcs=false -ldflags '-s -w -X main.version=$(VERSION)' \
			-o build/programs/$$arch/ ./src/cmd/beep ./src/cmd/beep-controller || exit; \
	done
	cd ci/image && CGO_ENABLED=0 $(GO) run -buildvcs=false . -programs $(CURDIR)/build/programs -name $(IMAGE) -out $(abspath $(IMAGE_DIR))

.PHONY: release
release: IMAGE := localhost/beep:$(VERSION)
release: image ## put image, bills of materials, manifests, notes and checksums of VERSION into build/release
	ci/release $(VERSION)

.PHONY: release-notes
release-notes: ## print what CHANGELOG.md says of VERSION
	@ci/release-notes $(VERSION)

.PHONY: publish-release
publish-release: ## make a release of build/release on GitHub (CI does, for tags)
	ci/publish-release $(VERSION)

.PHONY: test-image
test-image: ## test what builds the image
	cd ci/image && CGO_ENABLED=0 $(GO) test -count=1 ./...

.PHONY: monitoring
monitoring: ## write the dashboard and the operator's rules of deploy/monitoring
	@mkdir -p build
	cd ci/monitoring && $(GO) run -buildvcs=false . dashboard > $(CURDIR)/build/dashboard.json
	cd ci/monitoring && $(GO) run -buildvcs=false . rules < $(CURDIR)/deploy/monitoring/rules/beep.yaml > $(CURDIR)/build/rules.yaml
	mv build/dashboard.json deploy/monitoring/dashboards/beep.json
	mv build/rules.yaml deploy/monitoring/prometheus-operator/rules.yaml

# Prometheus's own rule engine: minutes to compile with an empty cache, so that `make test` leaves it out. That all names of
# metrics exist is a test of src/telemetry.
.PHONY: test-monitoring
test-monitoring: ## fire every alert of deploy/monitoring once, and read the dashboard by Grafana's schema
	cd ci/monitoring && CGO_ENABLED=0 $(GO) test -count=1 ./...

.PHONY: generate
generate: ## compile bpf/ with clang-19 and write its Go types
	$(GO) generate ./...

.PHONY: generate-check
generate-check: generate ## fail if the committed object or Go types differ from what bpf/ compiles to
	git diff --exit-code --stat -- $(GENERATED)
	@test -z "$$(git ls-files --others --exclude-standard -- $(GENERATED))" || \
		{ echo "generated files below $(GENERATED) are not committed: git add them" >&2; exit 1; }

.PHONY: fmt
fmt: ## format Go and C in place
	gofmt -w $(GO_DIRS)
	$(if $(C_FILES),$(CLANG_FORMAT) -i $(C_FILES))

.PHONY: fmt-check
fmt-check: ## fail if a Go or C file is not formatted
	@unformatted="$$(gofmt -l $(GO_DIRS))"; test -z "$$unformatted" || \
		{ echo "not formatted, run make fmt:" $$unformatted >&2; exit 1; }
	$(if $(C_FILES),$(CLANG_FORMAT) --dry-run --Werror $(C_FILES))

# The linter has a module of its own, so that its 200 dependencies never enter the product's go.mod.
$(GOLANGCI_LINT): ci/tools/go.mod ci/tools/go.sum
	cd ci/tools && CGO_ENABLED=0 GOBIN=$(BIN) $(GO) install -trimpath -buildvcs=false github.com/golangci/golangci-lint/v2/cmd/golangci-lint
	@touch $@

# What takes minutes with empty caches and is wanted late: .ci/run has it made while the rigs wait. The recipe compiles every
# test and runs none; machines, which are wanted last, come after it.
.PHONY: prepare
prepare: kube-binaries $(GOLANGCI_LINT) $(ACTIONLINT) ## build ahead what later targets need: Kubernetes programs, linters, tests, machines
	$(GO) test -exec true ./src/... ./harness/... ./rigs/...
	$(MAKE) --no-print-directory vm-kernels node-image

.PHONY: lint
lint: $(GOLANGCI_LINT) lint-workflows ## run golangci-lint: vet, staticcheck, doc comments, the import walls; and actionlint
	$(GOLANGCI_LINT) run --timeout 15m ./...

# Nor does this one, which wants another version of a library than the linter does.
$(ACTIONLINT): ci/actionlint/go.mod ci/actionlint/go.sum
	cd ci/actionlint && CGO_ENABLED=0 GOBIN=$(BIN) $(GO) install -trimpath -buildvcs=false github.com/rhysd/actionlint/cmd/actionlint
	@touch $@

.PHONY: lint-workflows
lint-workflows: $(ACTIONLINT) ## run actionlint on .github/workflows
	$(ACTIONLINT)

# But for what boots machines, which is tested with the rigs that do.
BOOTS := ./harness/vm ./harness/vm/guest

.PHONY: test-unit
test-unit: kube-binaries ## test the packages below src and harness (some need root)
	$(GO) test -count=1 -timeout 10m $$($(GO) list ./src/... ./harness/... | grep -v -e '/packettest$$' $(BOOTS:.%=-e '%$$'))

.PHONY: test-packet
test-packet: ## run the shipped object packet by packet in the kernel (BPF_PROG_TEST_RUN; needs root)
	$(GO) test -count=1 -timeout 10m ./harness/packettest/...

FUZZTIME ?= 1m

# Go runs one target at a time, and stops at the first finding: its input is then below testdata/fuzz, to be committed.
.PHONY: fuzz
fuzz: ## give the shipped programs packets that nobody would write, FUZZTIME=1m for each of the four kinds (needs root)
	for target in FuzzIPv4 FuzzIPv6 FuzzGeneve FuzzICMP; do \
		$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 2s ./harness/packetfuzz; \
	done

.PHONY: FORCE
FORCE:

ifeq ($(RIG_PROVIDER),)
# Specs have namespaces of their own, and most of these leave a core idle: two at a time, with ginkgo's own command. What
# floods, measures, or shares a cluster among its specs runs one after another, and so does a rig that has RIG_FLAGS.
SIDE_BY_SIDE := smoke crossnode uplinks fib coexist mtu churn

rig-%: build FORCE ## run one scenario below rigs/ with real sockets (needs root), as in make rig-smoke
	$(if $(filter $*,$(if $(RIG_FLAGS),,$(SIDE_BY_SIDE))),$(GO) run github.com/onsi/ginkgo/v2/ginkgo --procs=2 --timeout 15m ./rigs/$*,\
		$(GO) test -p 1 -count=1 -timeout 15m ./rigs/$* $(RIG_FLAGS))
else ifeq ($(RIG_PROVIDER),lima)
# In a machine of Lima, as a user who is not root: RIG_PROVIDER=lima make rig-smoke (harness/vm/lima).
rig-%: FORCE
	$(GO) run ./harness/vm/lima/rig $*
else
$(error RIG_PROVIDER is $(RIG_PROVIDER): want lima, or nothing for this machine)
endif

# In machines of Lima whatever RIG_PROVIDER says; with an image that is imported there.
.PHONY: rig-k3s
rig-k3s: image ## install, use and remove beep on k3s, in machines of Lima (not as root; see rigs/k3s)
	$(GO) test -p 1 -count=1 -timeout 60m ./rigs/k3s -ginkgo.v

# Print their figures.
rig-flood rig-memory rig-cluster-scale: RIG_FLAGS := -v

# Minutes the first time, nothing after that. Kept in the user's cache, not here: other checkouts share them.
.PHONY: kube-binaries
kube-binaries: ## build the Kubernetes programs that rigs with an API server run (once; see harness/kube/binaries)
	harness/kube/binaries/build

# Seconds the first time, nothing after that. Kept in the user's cache, as the Kubernetes programs are.
.PHONY: vm-kernels
vm-kernels: ## fetch the kernels of ci/kernels from Debian's archive (once; see harness/vm/kernels/fetch)
	set -- $$(awk '!/^#/ { print $$1 }' ci/kernels); for kernel; do harness/vm/kernels/fetch "$$kernel" || exit; done

# Minutes the first time, kubelet included.
.PHONY: node-image
node-image: ## build the disk that the nodes of rig-vm-cluster boot (once, as root; see harness/vm/node/image/build)
	harness/vm/node/image/build

# Two machines at a time: emulated, each keeps a core busy.
.PHONY: rig-vm-kernels rig-vm-kernels-short
rig-vm-kernels: ## run the packet suite and rigs on the kernels of ci/kernels, in machines under QEMU
rig-vm-kernels-short: ## run what of rig-vm-kernels is for every commit
rig-vm-kernels-short: export BEEP_VM_SHORT := 1
rig-vm-kernels rig-vm-kernels-short: build vm-kernels
	$(GO) test -p 1 -count=1 -timeout 20m $(BOOTS)
	$(GO) run github.com/onsi/ginkgo/v2/ginkgo --procs=2 --timeout 60m ./rigs/vm-kernels

# The installation as an operator has it, on two emulated machines: half an hour, most of which is waiting for them.
.PHONY: rig-vm-cluster rig-vm-cluster-short rig-vm-cluster-flannel
rig-vm-cluster: image kube-binaries node-image ## install, use, upgrade and remove beep on two virtual machines with kubelets (needs root)
	$(GO) test -p 1 -count=1 -timeout 60m -v ./rigs/vm-cluster
rig-vm-cluster-short: image kube-binaries node-image ## its first and last chapter: install, serve, remove
	$(GO) test -p 1 -count=1 -timeout 30m -v ./rigs/vm-cluster -ginkgo.label-filter=short
rig-vm-cluster-flannel: export BEEP_VM_CNI := flannel
rig-vm-cluster-flannel: image kube-binaries node-image ## the same with flannel as CNI, and what another pod network might spoil
	$(GO) test -p 1 -count=1 -timeout 40m -v ./rigs/vm-cluster -ginkgo.label-filter='short || network'

# A prerequisite alone; the recipe is that of rig-%.
rig-coexist-kubeproxy $(addprefix rig-,$(CLUSTER_RIGS)): kube-binaries

# A prerequisite gets the variables of who asks for it: half a minute of the rig here, and all of it by its own name.
.PHONY: test-kubeproxy
test-kubeproxy: RIG_FLAGS := -ginkgo.focus='nftables, offloads on'
test-kubeproxy: rig-coexist-kubeproxy ## run what rig-coexist-kubeproxy has of nftables with offloads on

.PHONY: test-namespaces
test-namespaces: $(addprefix rig-,$(RIGS)) ## run the rigs in namespaces, without a control plane

# These mostly wait, each for a control plane of its own: two at a time, the longest first.
.PHONY: test-clusters
test-clusters: build kube-binaries ## run the rigs that have a control plane, two at a time
	$(GO) test -p 2 -count=1 -timeout 20m $(addprefix ./rigs/,$(CLUSTER_RIGS))

# The cheapest failure first, but what needs the Kubernetes programs last: they may still be in the making (see prepare).
.PHONY: test
test: deps build test-packet test-image test-report $(addprefix rig-,$(RIGS)) test-unit test-clusters test-kubeproxy ## run everything: unit, packet, and all rigs

.PHONY: show-artifacts
show-artifacts: ## print the text files that failed specs left below build/artifacts
	@find build/artifacts -type f ! -name '*.pcap*' -size -200k 2>/dev/null | sort | xargs --no-run-if-empty tail -n 300 -v

# Built, not `go run`: that would die of a SIGTERM alone and leave the demo and its namespaces behind.
.PHONY: demo
demo: deps build ## three nodes, two pods and a client in namespaces, fed with manifests: see it work (needs root)
	$(GO) build -buildvcs=false -o $(BIN)/demo ./rigs/demo
	$(BIN)/demo

# Ctrl-C ends it early and leaves nothing behind. Other programs that run meanwhile disturb it, and the results say how much.
.PHONY: bench bench-quick
bench: BENCH_OUT := docs/performance
bench-quick: BENCH_OUT := build/bench
bench-quick: BENCH_FLAGS := -quick
bench: ## measure beep beside kube-proxy and a plain router, and write docs/performance (ten minutes; needs root)
bench-quick: ## the same in two minutes, into build/bench
bench bench-quick: build kube-binaries
	$(GO) build -buildvcs=false -o $(BIN)/bench ./rigs/bench
	mkdir -p $(BENCH_OUT)
	$(BIN)/bench $(BENCH_FLAGS) -out $(BENCH_OUT)/record.txt
	cd harness/bench/report && CGO_ENABLED=0 $(GO) run -buildvcs=false . -in $(abspath $(BENCH_OUT))/record.txt -out $(abspath $(BENCH_OUT))

.PHONY: test-report
test-report: ## test what makes tables and figures of a bench's record
	cd harness/bench/report && CGO_ENABLED=0 $(GO) test -count=1 ./...

.PHONY: clean
clean: ## remove what was built
	rm -rf $(BIN) build
