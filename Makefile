# make            builds bin/sandbox-exec
# make test       installs what the tests need and runs them all
# make demo       shows the promises on a repository that it makes

PREFIX ?= /usr/local
# macOS has a tool of this name, which others look up in PATH: NAME=sbx there.
NAME   ?= sandbox-exec
GO     ?= go

# Versions of the tools that check the sources.
GOFUMPT     = mvdan.cc/gofumpt@v0.12.0
STATICCHECK = honnef.co/go/tools/cmd/staticcheck@v0.8.2

TARGETS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64

# Limits under which the escapes that exhaust a machine are tried.
ESCAPES = bin/sandbox-exec -q --memory 2G --pids 500 --

# The kernel enters the helper before the Go runtime (-E: see cmd/link). Without
# it all works, a millisecond later.
ENTRY = -E github.com/sandbox-exec/sandbox-exec/sandbox/linux/internal/helper.entry
ifneq ($(shell $(GO) env GOOS),linux)
ENTRY =
endif

.PHONY: build install test race corpus escapes demo bench soak kmatrix lint entry fuzz cross generate generated clean

build:
	CGO_ENABLED=0 $(GO) build -tags urfave_cli_no_docs -trimpath -ldflags '-s -w $(ENTRY)' -o bin/sandbox-exec ./cmd/sandbox-exec

install: build
	install -d $(DESTDIR)$(PREFIX)/bin
	install -m 755 bin/sandbox-exec $(DESTDIR)$(PREFIX)/bin/$(NAME)

test: build
	scripts/test.sh

# The race detector needs cgo, and waits for a second at the end of every process
# if it is let.
race:
	CGO_ENABLED=1 GORACE=atexit_sleep_ms=10 $(GO) test -p 1 -race ./...

# What the judge says of the labelled commands.
corpus:
	$(GO) test -count=1 -v -run Corpus ./policy

# As an ordinary user and, for root, as root too.
escapes: build
	scripts/escapes.sh $(ESCAPES)

demo: build
	scripts/demo.sh

# Runs, some of them killed, and a look for what they left; ARGS='--runs 10000'.
soak: build
	scripts/soak.sh $(ARGS)

# The self-test and the tests of sandbox/linux in Debian's other kernels.
kmatrix:
	scripts/kmatrix.sh $(ARGS)

# What a sandbox costs; ARGS='-rounds 500 -json FILE'.
bench: build
	scripts/bench.sh $(ARGS)

lint:
	GOBIN=$(CURDIR)/bin/tools $(GO) install $(GOFUMPT)
	GOBIN=$(CURDIR)/bin/tools $(GO) install $(STATICCHECK)
	unformatted=$$(bin/tools/gofumpt -l .); echo "$$unformatted"; test -z "$$unformatted"
	$(GO) mod tidy -diff
	for os in linux darwin; do for arch in amd64 arm64; do \
		echo "vet $$os/$$arch"; GOOS=$$os GOARCH=$$arch CGO_ENABLED=0 $(GO) vet ./... || exit 1; done; done
	for target in $(TARGETS); do \
		echo "staticcheck $$target"; GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 bin/tools/staticcheck ./... || exit 1; done
	for script in .ci/run scripts/*.sh; do bash -n $$script || exit 1; done

entry:
	@echo "$(ENTRY)"

# Every fuzz target for FUZZTIME.
FUZZTIME ?= 10s
fuzz:
	scripts/fuzz.sh $(FUZZTIME)

cross:
	for target in $(TARGETS); do echo "build $$target"; \
		case $$target in linux/*) entry='$(ENTRY)';; *) entry=;; esac; \
		GOOS=$${target%/*} GOARCH=$${target#*/} CGO_ENABLED=0 $(GO) build -tags urfave_cli_no_docs -trimpath -ldflags "$$entry" -o /dev/null ./cmd/sandbox-exec || exit 1; done

# The seccomp filters (needs libseccomp-dev) and the tables of profiles.
generate:
	$(GO) generate ./...

# What is generated is what the sources say; a test looks after profiles.
generated:
	cd sandbox/linux && CGO_ENABLED=1 $(GO) run -tags libseccomp ../../scripts/genseccomp -check

clean:
	rm -rf bin
