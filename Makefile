# Start with `make run` or `make test`: both install what is missing (on Debian) and build.

SWIFT ?= swift
FUZZ_SECONDS ?= 600
BENCH_SECONDS ?= 5
SOAK ?= 5m
BENCH_CONCURRENCY ?= 64
# Further arguments for the benchmarks: make bench BENCH='--case get12@64 --rounds 9'
BENCH ?=
CURVES ?=

# A crash under a sanitizer is reported by the sanitizer; Swift's own backtracer would run inside it and hang.
SANITIZED = SWIFT_BACKTRACE=enable=no
# Only Swift Testing is used: with XCTest every run would end with a second, empty report.
# No parallel runs: many tests measure time, and a server without CPU time responds late.
SUITES = .ci/suites $(SWIFT) test --disable-xctest --no-parallel
SOURCES = Package.swift Sources Tests Benchmarks Examples
# The file with the notes of the fault tests, and the suites that write them.
NOTES = $(CURDIR)/.build/faults.jsonl
FAULTS = Fault|SlowPeer|RedirectSecret|StreamReader|StreamFlow|RetryAfter|RetryFlow|RetryWay|RepeatedRequest|BatchTests
FAULTS := $(FAULTS)|ChainTests|BrokenUpload|ReplayedUpload|CacheRule|CacheKey|KilledDownload|DamageTests|ProcessTests|WatchingSecret|CacheOrder
# Suites that run on both engines, because the engine may make a difference.
ENGINE = CFerryTests|FerryTransportTests|Fault|RaceTests|CancelTests|StreamReader|BrokenUpload|RepeatedRequest|DownloadTests|SegmentTests
ENGINE := $(ENGINE)|UploadTrailerTests|InformationalTests
# Suites for which the version of libcurl may make a difference.
LIBCURL = CFerryTests|FerryTransportTests|FramingFault|ReuseFault|RefusedUpload|TLSFault|ProxyFault|BrokenUpload
LIBCURL := $(LIBCURL)|FuzzTests|RepeatedRequest|CookieTests|TLSTests|ProxyTests|HTTP2

.DEFAULT_GOAL := help
.PHONY: help setup build run test test-long test-package check-traits test-integration test-libcurl faults test-tsan test-asan fuzz bench curves soak docs lint format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install missing packages (apt, as root or with sudo)
	@.ci/setup

build: setup ## Build everything in debug
	$(SWIFT) build --build-tests

run: setup ## Build in release, show each feature, then measure for five seconds
	$(SWIFT) build -c release --product ferry
	.build/release/ferry tour
	.build/release/ferry run --serve Examples/*.json
	.build/release/ferry bench -z $(BENCH_SECONDS) -c $(BENCH_CONCURRENCY)

test: build ## Run all tests that need no other servers
	@.ci/setup tests
	@rm -f $(NOTES)
	@.ci/groups test \
	    'FERRY_ENGINE=libcurl $$tests --filter "^FerryTests\..*($(ENGINE))"' \
	    'FERRY_FAULTS=$(NOTES) $$tests --filter "^FerryTests\." --skip "^FerryTests\..*($(ENGINE))"' \
	    'FERRY_FAULTS=$(NOTES) $$tests --filter "^FerryTests\..*($(ENGINE))"' \
	    'FERRY_FAULTS=$(NOTES) $$tests --skip "^FerryTests\." --skip FerryIntegrationTests' \
	    'FERRY_ENGINE=libcurl $$tests --filter "$(ENGINE)" --skip "^FerryTests\." --skip FerryIntegrationTests'
	FERRY_FAULTS=$(NOTES) FERRY_FAULT_TABLE=check $(SUITES) --skip-build --filter FaultTableTests

test-long: build ## Run repetitive tests with all their repetitions; make test runs a part of them
	@.ci/setup tests
	@.ci/groups long \
	    'FERRY_LONG_TESTS=1 $$tests --filter "FerryCacheTests.*(DamageTests|ProcessTests)"' \
	    'FERRY_LONG_TESTS=1 $$tests --filter "FerryCommandTests.*KilledDownloadTests"' \
	    'FERRY_LONG_TESTS=1 $$tests --filter "FerryTests.*(AddressSelectionTests|DuplexTests)"'

test-package: setup ## Build and run the examples in a copy outside the tree
	@Tests/Examples/run

check-traits: setup ## Test the adapters behind the package traits, with clones in FERRY_PACKAGES=DIR or from the network
	@.ci/check-traits

test-integration: ## Test against nginx, squid and other real servers; installs and starts them
	@.ci/setup integration
	$(SWIFT) build --build-tests
	@rm -f $(NOTES)
	@.ci/groups integration \
	    'FERRY_FAULTS=$(NOTES) $$tests --filter FerryIntegrationTests' \
	    'FERRY_ENGINE=libcurl $$tests --filter FerryIntegrationTests.InjectionTests'
	FERRY_FAULTS=$(NOTES) FERRY_FAULT_TABLE=check-servers $(SUITES) --skip-build --filter FaultTableTests

test-libcurl: ## Test what depends on libcurl with libcurl 8 from Debian's backports
	@.ci/setup integration
	$(SWIFT) build --build-tests
	@.ci/groups libcurl 'FERRY_ENGINE=libcurl .ci/libcurl $$tests --filter "$(LIBCURL)"'

faults: ## Run every fault of the manual's table, and write the table
	@.ci/setup integration
	$(SWIFT) build --build-tests
	@rm -f $(NOTES)
	FERRY_FAULTS=$(NOTES) $(SUITES) --skip-build --filter '$(FAULTS)'
	FERRY_FAULTS=$(NOTES) FERRY_FAULT_TABLE=write $(SUITES) --skip-build --filter FaultTableTests

test-tsan: ## Run all tests with the thread sanitizer, also those against real servers
	@.ci/setup tests
	@.ci/setup integration
	TSAN_OPTIONS=suppressions=$(CURDIR)/.ci/tsan.supp \
	$(SANITIZED) $(SUITES) --sanitize=thread --scratch-path .build-tsan -Xswiftc -DFERRY_TSAN

test-asan: ## Run all tests with the address sanitizer, also those against real servers
	@.ci/setup tests
	@.ci/setup integration
	LSAN_OPTIONS=suppressions=$(CURDIR)/.ci/lsan.supp \
	$(SANITIZED) $(SUITES) --sanitize=address --scratch-path .build-asan -Xswiftc -DFERRY_ASAN

fuzz: setup ## Fuzz all code that reads outside input for ten minutes (FUZZ_SECONDS), or one target (FUZZ=url)
	@Tests/Fuzz/run $(FUZZ_SECONDS) $(FUZZ)

bench: ## Measure Ferry and other clients side by side; results go to Benchmarks/Results
	@.ci/setup bench
	$(SWIFT) build -c release --product ferry
	$(SWIFT) build -c release --product FerryBenchmarks
	.build/release/FerryBenchmarks $(BENCH)

curves: ## Plot cost by concurrency, body size and cache entries (CURVES='--curve bodies') to Benchmarks/Results
	@.ci/setup bench
	$(SWIFT) build -c release --product FerryBenchmarks
	.build/release/FerryBenchmarks curves $(CURVES)

soak: ## Run everything at once with faults for five minutes (SOAK=30m); plots go to Benchmarks/Results
	@.ci/setup bench
	$(SWIFT) build -c release --product FerryBenchmarks
	.build/release/FerryBenchmarks soak --time $(SOAK)

docs: setup ## Build the manual and the reference into .build/docs
	.ci/docs

lint: ## Check the format of all Swift files
	$(SWIFT) format lint --strict --parallel --recursive $(SOURCES)
	@.ci/comments $(SOURCES)
	@.ci/mutexes

format: ## Format all Swift files
	$(SWIFT) format --in-place --parallel --recursive $(SOURCES)

clean: ## Remove everything built
	rm -rf .build .build-tsan .build-asan .build-fuzz .build-package
