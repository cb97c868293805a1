# Everything begins with `make run` or `make test`; both install what is missing (Debian) and build by themselves.

SWIFT ?= swift
FUZZ_SECONDS ?= 600
BENCH_SECONDS ?= 5
SOAK ?= 5m
BENCH_CONCURRENCY ?= 64
# More of it for the benchmarks: make bench BENCH='--case get12@64 --rounds 9'
BENCH ?=
CURVES ?=

# A crash under a sanitizer is reported by the sanitizer; Swift's own backtracer would run inside it and hang.
SANITIZED = SWIFT_BACKTRACE=enable=no
# Only Swift Testing is used; without this every run ends with a second, empty report.
# One after another: many of the tests are about times, and a server of theirs that cannot run is late.
SUITES = .ci/suites $(SWIFT) test --disable-xctest --no-parallel
SOURCES = Package.swift Sources Tests Benchmarks Examples
# What the tests of faults note, and the suites that do.
NOTES = $(CURDIR)/.build/faults.jsonl
FAULTS = Fault|SlowPeer|RedirectSecret|StreamReader|StreamFlow|RetryAfter|RetryFlow|RetryWay|RepeatedRequest|BatchTests
FAULTS := $(FAULTS)|ChainTests|BrokenUpload|ReplayedUpload|CacheRule|CacheKey|KilledDownload|DamageTests|ProcessTests|WatchingSecret|CacheOrder
# What may differ with the engine: played on both.
ENGINE = CFerryTests|FerryTransportTests|Fault|RaceTests|CancelTests|StreamReader|BrokenUpload|RepeatedRequest|DownloadTests|SegmentTests
ENGINE := $(ENGINE)|DuplexTests|DuplexEndTests|DuplexServerTests|UploadTrailerTests|InformationalTests
# What may differ with the version of libcurl.
LIBCURL = CFerryTests|FerryTransportTests|FramingFault|ReuseFault|RefusedUpload|TLSFault|ProxyFault|BrokenUpload
LIBCURL := $(LIBCURL)|FuzzTests|RepeatedRequest|CookieTests|TLSTests|ProxyTests|HTTP2

.DEFAULT_GOAL := help
.PHONY: help setup build run test test-long test-package check-traits test-integration test-libcurl faults test-tsan test-asan fuzz bench curves soak docs lint format clean

help: ## Lists the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Installs the packages that are missing (apt, as root or with sudo)
	@.ci/setup

build: setup ## Builds everything in debug
	$(SWIFT) build --build-tests

run: setup ## Builds in release, shows what works, then measures for five seconds
	$(SWIFT) build -c release --product ferry
	.build/release/ferry tour
	.build/release/ferry run --serve Examples/*.json
	.build/release/ferry bench -z $(BENCH_SECONDS) -c $(BENCH_CONCURRENCY)

test: build ## Runs all tests that need no servers, those of transfers on both engines, then the examples as a package
	@.ci/setup tests
	@rm -f $(NOTES)
	@.ci/groups \
	    'FERRY_ENGINE=libcurl $$tests --filter "^FerryTests\..*($(ENGINE))"' \
	    'FERRY_FAULTS=$(NOTES) $$tests --filter "^FerryTests\." --skip "^FerryTests\..*($(ENGINE))"' \
	    'FERRY_FAULTS=$(NOTES) $$tests --filter "^FerryTests\..*($(ENGINE))"' \
	    'FERRY_FAULTS=$(NOTES) $$tests --skip "^FerryTests\." --skip FerryIntegrationTests' \
	    'FERRY_ENGINE=libcurl $$tests --filter "$(ENGINE)" --skip "^FerryTests\." --skip FerryIntegrationTests'
	FERRY_FAULTS=$(NOTES) FERRY_FAULT_TABLE=check $(SUITES) --skip-build --filter FaultTableTests
	@$(MAKE) --no-print-directory test-package

test-long: build ## Runs the tests that repeat something many times, with all repetitions; make test plays a share of them
	@.ci/setup tests
	@.ci/groups \
	    'FERRY_LONG_TESTS=1 $$tests --filter "FerryCacheTests.*(DamageTests|ProcessTests)"' \
	    'FERRY_LONG_TESTS=1 $$tests --filter "FerryCommandTests.*KilledDownloadTests"' \
	    'FERRY_LONG_TESTS=1 $$tests --filter "FerryTests.*(AddressSelectionTests|DuplexTests)"' \
	    'FERRY_LONG_TESTS=1 FERRY_ENGINE=libcurl $$tests --filter "FerryTests.*DuplexTests"'

test-package: setup ## Builds and runs the examples, copied out of the tree
	@Tests/Examples/run

check-traits: setup ## Tests the adapters behind the package's traits, with clones in FERRY_PACKAGES=DIR or a network
	@.ci/check-traits

test-integration: ## Tests against nginx, squid and other real servers; installs and starts them
	@.ci/setup integration
	$(SWIFT) build --build-tests
	@rm -f $(NOTES)
	FERRY_FAULTS=$(NOTES) $(SUITES) --skip-build --filter FerryIntegrationTests
	FERRY_ENGINE=libcurl $(SUITES) --skip-build --filter FerryIntegrationTests.InjectionTests
	FERRY_FAULTS=$(NOTES) FERRY_FAULT_TABLE=check-servers $(SUITES) --skip-build --filter FaultTableTests

test-libcurl: ## Tests what depends on libcurl with one of 8.x, from Debian's backports, in the place of the system's
	@.ci/setup integration
	$(SWIFT) build --build-tests
	FERRY_ENGINE=libcurl .ci/libcurl $(SUITES) --skip-build --filter '$(LIBCURL)'

faults: ## Plays every fault of the manual's table, and writes the table anew
	@.ci/setup integration
	$(SWIFT) build --build-tests
	@rm -f $(NOTES)
	FERRY_FAULTS=$(NOTES) $(SUITES) --skip-build --filter '$(FAULTS)'
	FERRY_FAULTS=$(NOTES) FERRY_FAULT_TABLE=write $(SUITES) --skip-build --filter FaultTableTests

test-tsan: ## Runs all tests under the thread sanitizer, those against real servers too
	@.ci/setup tests
	@.ci/setup integration
	TSAN_OPTIONS=suppressions=$(CURDIR)/.ci/tsan.supp \
	$(SANITIZED) $(SUITES) --sanitize=thread --scratch-path .build-tsan -Xswiftc -DFERRY_TSAN

test-asan: ## Runs all tests under the address sanitizer, those against real servers too
	@.ci/setup tests
	@.ci/setup integration
	LSAN_OPTIONS=suppressions=$(CURDIR)/.ci/lsan.supp \
	$(SANITIZED) $(SUITES) --sanitize=address --scratch-path .build-asan -Xswiftc -DFERRY_ASAN

fuzz: setup ## Fuzzes all that reads what comes from outside, for ten minutes (FUZZ_SECONDS), or one target (FUZZ=url)
	@Tests/Fuzz/run $(FUZZ_SECONDS) $(FUZZ)

bench: ## Measures Ferry beside its rivals; results go to Benchmarks/Results
	@.ci/setup bench
	$(SWIFT) build -c release --product ferry
	$(SWIFT) build -c release --product FerryBenchmarks
	.build/release/FerryBenchmarks $(BENCH)

curves: ## Plots how the cost grows: at once, body size, cache entries (CURVES='--curve bodies'); to Benchmarks/Results
	@.ci/setup bench
	$(SWIFT) build -c release --product FerryBenchmarks
	.build/release/FerryBenchmarks curves $(CURVES)

soak: ## Everything at once with faults on, for five minutes (SOAK=30m), beside URLSession; plots go to Benchmarks/Results
	@.ci/setup bench
	$(SWIFT) build -c release --product FerryBenchmarks
	.build/release/FerryBenchmarks soak --time $(SOAK)

docs: setup ## Builds the manual and the reference into .build/docs
	.ci/docs

lint: ## Checks the layout of all Swift files
	$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)
	@.ci/comments $(SOURCES)

format: ## Brings all Swift files into that layout
	$(SWIFT) format --in-place --parallel --recursive $(SOURCES)

clean: ## Removes everything built
	rm -rf .build .build-tsan .build-asan .build-fuzz .build-package
