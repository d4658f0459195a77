VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo devel)
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

.PHONY: help
help: ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+( [a-z-]+)*:.*## / { printf "  %-12s %s\n", $$1, $$2 }' Makefile

.PHONY: demo
demo: postgres ## run the example, an appointment service that sends its reminders
	go run ./examples/turnos

.PHONY: build
build: ## build the standalone relay: bin/relay
	scripts/build.sh $(VERSION) bin/relay

.PHONY: dist
dist: ## build it for linux, darwin and windows on amd64 and arm64, with checksums: dist/
	scripts/dist.sh $(VERSION)

.PHONY: dist-check
dist-check: ## check that a commit always builds to the same bytes, some minutes
	scripts/dist-check.sh

.PHONY: test
test: postgres ## run the tests on a real Postgres, with the race detector
	go test -race ./...

.PHONY: check
check: ## what CI runs: gofmt, vet, staticcheck, test
	@unformatted=$$(gofmt -l .); if [ -n "$$unformatted" ]; then echo "run gofmt -w on:" $$unformatted; exit 1; fi
	go vet ./...
	go run $(STATICCHECK) ./...
	cd bench && go vet ./... && go run $(STATICCHECK) ./... && go test ./...
	@$(MAKE) test

.PHONY: bench
bench: postgres ## measure everything, under 20 minutes: bench/results/
	cd bench && go run .

.PHONY: bench-quick
bench-quick: postgres ## measure everything with few messages, under 3 minutes
	cd bench && go run . -quick

.PHONY: bench-bars
bench-bars: postgres ## the bars of speed, each with its target
	cd bench && go run . -bars

.PHONY: stress
stress: postgres ## the watch lock under 250,000 transactions of three kinds
	go test ./tests -run 'WatchLock|Stress' -v -timeout 20m -watch.transactions=100000

.PHONY: model
model: ## check the watch lock's model with Spin
	@scripts/spin.sh
	tests/model/check.sh

.PHONY: postgres
postgres: ## install Postgres where there is none (DATABASE_URL says where one is)
	@scripts/postgres.sh
