# Start with `make run` or `make test`: both install what is missing (on Debian) and build.

SWIFT ?= swift
FUZZ_SECONDS ?= 600
BENCH_SECONDS ?= 5
SOAK ?= 5m
BENCH_CONCURRENCY ?= 64
# Further arguments for the benchmarks: make bench BENCH='--case get12@64 --rounds 9'
BENCH ?=
CURVES ?=
# Options of the build for tests, which has a folder of its own. The library is optimized, with assertions and with access
# to internal declarations: the tests then take less than half of the time. The test targets are not (Package.swift).
# Without debug information of Swift and without checks of what the compiler itself has made, the build takes less CPU time.
# The scripts in .ci read the same file.
override TEST_FLAGS := $(shell cat .ci/flags)
# Not empty: the tests have been built, and no source has changed since. `make run` then runs the command of that build.
BUILT ?=
# Not empty: make test runs test-integration, test-libcurl and test-long, too, without a wait between them.
ALL ?=
# What `make setup` installs besides the packages of the build: tests, integration, bench.
SETUP ?=

# A crash under a sanitizer is reported by the sanitizer; Swift's own backtracer would run inside it and hang.
SANITIZED = SWIFT_BACKTRACE=enable=no
# Only Swift Testing is used: with XCTest every run would end with a second, empty report.
# No parallel runs: many tests measure time, and a server without CPU time responds late.
SUITES = .ci/suites $(SWIFT) test --disable-xctest --no-parallel
# The test program as it was built. It needs no lock of SwiftPM, which another build may hold.
TESTS = .ci/suites "$$($(SWIFT) build $(TEST_FLAGS) --show-bin-path)/ferryPackageTests.xctest" \
    --testing-library swift-testing --no-parallel
# Programs in release need no Swift on the machine that they run on.
RELEASE = $(SWIFT) build -c release --static-swift-stdlib
BUILD_TESTS = $(if $(BUILT),@true,$(SWIFT) build --build-tests $(TEST_FLAGS))
FERRY = $(if $(BUILT),"$$($(SWIFT) build $(TEST_FLAGS) --show-bin-path)/ferry",.build/release/ferry)
SOURCES = Package.swift Sources Tests Benchmarks Examples
# The files with the notes of the fault tests, those against servers apart, and the suites that write them.
NOTES = $(CURDIR)/.build/faults.jsonl
SERVER_NOTES = $(CURDIR)/.build/faults-servers.jsonl
FAULTS = Fault|SlowPeer|RedirectSecret|StreamReader|StreamFlow|RetryAfter|RetryFlow|RetryWay|RepeatedRequest|BatchTests
FAULTS := $(FAULTS)|ChainTests|BrokenUpload|ReplayedUpload|CacheRule|CacheKey|KilledDownload|DamageTests|ProcessTests|WatchingSecret|CacheOrder
# Suites that run on both engines, because the engine may make a difference.
ENGINE = CFerryTests|FerryTransportTests|Fault|RaceTests|CancelTests|StreamReader|BrokenUpload|RepeatedRequest|DownloadTests|SegmentTests
ENGINE := $(ENGINE)|UploadTrailerTests|InformationalTests
# Suites for which the version of libcurl may make a difference.
LIBCURL = CFerryTests|FerryTransportTests|FramingFault|ReuseFault|RefusedUpload|TLSFault|ProxyFault|BrokenUpload
LIBCURL := $(LIBCURL)|FuzzTests|RepeatedRequest|CookieTests|TLSTests|ProxyTests|HTTP2

# Suites outside the modules below that repeat long. With ALL, the other groups of the default engine leave them out.
LONG_SUITES = FerryCacheTests\..*(DamageTests|ProcessTests)|FerryCommandTests\..*KilledDownloadTests

# The test modules of Ferry.
AGENT_TESTS = ^Ferry(Body|CachePolicy|Fault|Network)?Tests\.

# Groups of tests for .ci/groups. The groups that take longest come first.
TEST_GROUPS = \
    'FERRY_ENGINE=libcurl $$tests --filter "$(AGENT_TESTS).*($(ENGINE))"' \
    'FERRY_FAULTS=$(NOTES) $$tests --filter "$(AGENT_TESTS).*($(ENGINE))"' \
    'FERRY_FAULTS=$(NOTES) $$tests --skip "$(AGENT_TESTS)" --skip FerryIntegrationTests $(if $(ALL),--skip "$(LONG_SUITES)")' \
    'FERRY_FAULTS=$(NOTES) $$tests --filter "$(AGENT_TESTS)" --skip "$(AGENT_TESTS).*($(ENGINE))"' \
    'FERRY_ENGINE=libcurl $$tests --filter "$(ENGINE)" --skip "$(AGENT_TESTS)" --skip FerryIntegrationTests'
INTEGRATION_GROUPS = \
    'FERRY_FAULTS=$(SERVER_NOTES) $$tests --filter FerryIntegrationTests' \
    'FERRY_ENGINE=libcurl $$tests --filter FerryIntegrationTests.InjectionTests'
LIBCURL_GROUPS = \
    'FERRY_ENGINE=libcurl .ci/libcurl $$tests --filter "$(AGENT_TESTS).*($(LIBCURL))"' \
    'FERRY_ENGINE=libcurl .ci/libcurl $$tests --filter "$(LIBCURL)" --skip "$(AGENT_TESTS)"'
LONG_GROUPS = \
    '$(if $(ALL),FERRY_FAULTS=$(NOTES)) FERRY_LONG_TESTS=1 $$tests --filter "$(LONG_SUITES)"' \
    'FERRY_LONG_TESTS=1 $$tests --filter "$(AGENT_TESTS).*(AddressSelectionTests|DuplexTests$(if $(ALL),,|RaceTests))"'
CHECK_FAULTS = FERRY_FAULTS=$(NOTES) FERRY_FAULT_TABLE=check $(TESTS) --filter FaultTableTests
CHECK_SERVER_FAULTS = FERRY_FAULTS=$(SERVER_NOTES) FERRY_FAULT_TABLE=check-servers $(TESTS) --filter FaultTableTests

.DEFAULT_GOAL := help
.PHONY: help setup build release run test test-long test-package check-traits test-integration test-libcurl faults test-tsan test-asan fuzz bench curves soak docs lint format clean

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-17s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Install missing packages (apt, as root or with sudo)
	@.ci/setup $(SETUP)

build: setup ## Build the tests and everything that they use
	$(BUILD_TESTS)

release: setup ## Build the command in release
	$(RELEASE) --product ferry

run: $(if $(BUILT),,release) ## Build in release (BUILT=yes: use the build of the tests), show each feature, then measure for five seconds
	$(FERRY) tour
	$(FERRY) run --serve Examples/*.json
	$(FERRY) bench -z $(BENCH_SECONDS) -c $(BENCH_CONCURRENCY)

test: build ## Run all tests that need no other servers, and with ALL=yes also those of the next targets
	@.ci/setup tests $(if $(ALL),integration)
	@$(if $(ALL),.ci/libcurl true,:)
	@rm -f $(NOTES) $(if $(ALL),$(SERVER_NOTES))
	@.ci/groups test $(TEST_GROUPS) $(if $(ALL),$(INTEGRATION_GROUPS) $(LIBCURL_GROUPS) $(LONG_GROUPS))
	$(CHECK_FAULTS)
	$(if $(ALL),$(CHECK_SERVER_FAULTS))

test-long: build ## Run repetitive tests with all their repetitions; make test runs a part of them
	@.ci/setup tests
	@.ci/groups long $(LONG_GROUPS)

test-package: setup ## Build and run the examples in a copy outside the tree
	@Tests/Examples/run

check-traits: setup ## Test the adapters behind the package traits, with clones in FERRY_PACKAGES=DIR or from the network
	@.ci/check-traits

test-integration: ## Test against nginx, squid and other real servers; installs and starts them
	@.ci/setup integration
	$(BUILD_TESTS)
	@rm -f $(SERVER_NOTES)
	@.ci/groups integration $(INTEGRATION_GROUPS)
	$(CHECK_SERVER_FAULTS)

test-libcurl: ## Test what depends on libcurl with libcurl 8 from Debian's backports
	@.ci/setup integration
	$(BUILD_TESTS)
	@.ci/libcurl true # fetches it, before two groups need it
	@.ci/groups libcurl $(LIBCURL_GROUPS)

faults: ## Run every fault of the manual's table, and write the table
	@.ci/setup integration
	$(BUILD_TESTS)
	@rm -f $(NOTES)
	FERRY_FAULTS=$(NOTES) $(TESTS) --filter '\..*($(FAULTS))'
	FERRY_FAULTS=$(NOTES) FERRY_FAULT_TABLE=write $(TESTS) --filter FaultTableTests

test-tsan: ## Run all tests with the thread sanitizer, also those against real servers
	@.ci/setup tests
	@.ci/setup integration
	TSAN_OPTIONS=suppressions=$(CURDIR)/.ci/tsan.supp \
	$(SANITIZED) $(SUITES) --sanitize=thread --scratch-path .build-tsan -Xswiftc -DFERRY_TSAN

test-asan: ## Run all tests with the address sanitizer, also those against real servers
	@.ci/setup tests
	@.ci/setup integration
	LSAN_OPTIONS=suppressions=$(CURDIR)/.ci/lsan.supp:print_suppressions=0 \
	$(SANITIZED) $(SUITES) --sanitize=address --scratch-path .build-asan -Xswiftc -DFERRY_ASAN

fuzz: setup ## Fuzz all code that reads outside input for ten minutes (FUZZ_SECONDS), or one target (FUZZ=url)
	@Tests/Fuzz/run $(FUZZ_SECONDS) $(FUZZ)

bench: ## Measure Ferry and other clients side by side; results go to Benchmarks/Results
	@.ci/setup bench
	$(RELEASE) --product ferry
	$(RELEASE) --product FerryBenchmarks
	.build/release/FerryBenchmarks $(BENCH)

curves: ## Plot cost by concurrency, body size and cache entries (CURVES='--curve bodies') to Benchmarks/Results
	@.ci/setup bench
	$(RELEASE) --product FerryBenchmarks
	.build/release/FerryBenchmarks curves $(CURVES)

soak: ## Run everything at once with faults for five minutes (SOAK=30m); plots go to Benchmarks/Results
	@.ci/setup bench
	$(RELEASE) --product FerryBenchmarks
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
	rm -rf .build .build-tests .build-tsan .build-asan .build-fuzz .build-traits
