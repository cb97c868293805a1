import CCoreParts
import CFerry
import Testing

extension CoreTests {
    /// The next expiry of a transfer, without a loop.
    @Suite struct Expiry {
        private func expiry(_ change: (inout parts_limits) -> Void) -> parts_expiry {
            var limits = parts_limits()
            limits.now = 10_000
            limits.began = 9_000
            limits.last = 9_900
            limits.phase = Int32(FERRY_PHASE_BODY)
            change(&limits)
            var expiry = parts_expiry()
            parts_expiry_of(&expiry, &limits)
            return expiry
        }

        @Test func theNearestLimitIsTheNext() {
            #expect(expiry { _ in }.at == 0)
            #expect(expiry { $0.total = 5_000 }.at == 14_000)
            let next = expiry {
                $0.total = 5_000
                $0.idle = 300
                $0.deadline = 4_000
                $0.connect = 1  // it is connected
            }
            #expect(next.at == 10_200 && !next.now)
        }

        @Test func expiredLimitsAreReported() {
            let phases = [
                (FERRY_PHASE_DNS, FERRY_D_TIMEOUT_DNS), (FERRY_PHASE_CONNECT, FERRY_D_TIMEOUT_CONNECT),
                (FERRY_PHASE_TLS, FERRY_D_TIMEOUT_TLS), (FERRY_PHASE_SEND, FERRY_D_TIMEOUT_WRITE),
                (FERRY_PHASE_WAIT_HEAD, FERRY_D_TIMEOUT_RESPONSE_HEAD), (FERRY_PHASE_BODY, FERRY_D_TIMEOUT_READ),
            ]
            for (phase, detail) in phases {
                let idle = expiry {
                    $0.phase = Int32(phase)
                    $0.idle = 100
                }
                #expect(idle.now && idle.detail == Int32(detail))
            }
            #expect(expiry { $0.deadline = 1_000 }.detail == Int32(FERRY_D_TIMEOUT_DEADLINE))
            let queue = expiry {
                $0.deadline = 1_000
                $0.waits = true
            }
            #expect(queue.detail == Int32(FERRY_D_TIMEOUT_QUEUE))
        }

        @Test func timeInWhichTheLoopWasHeldDoesNotCount() {
            let held = expiry {
                $0.idle = 100
                $0.held_from = 9_950
                $0.held_until = 10_000
            }
            #expect(!held.now && held.at == 10_050)
            let deadline = expiry {
                $0.deadline = 980
                $0.held_from = 9_950
                $0.held_until = 10_000
            }
            #expect(!deadline.now && deadline.at == 10_050, "a moment after it, no longer than it took")
        }

        @Test func aPausedTransferIsNotIdle() {
            let paused = expiry {
                $0.idle = 100
                $0.receiver_paused = true
            }
            #expect(!paused.now && paused.at == 10_100)
            let answered = expiry {
                $0.idle = 100
                $0.source_paused = true
                $0.answered = true
            }
            #expect(answered.unsent && !answered.now)
        }

        @Test func aTooSlowWindowIsATimeout() {
            func speed(_ moved: UInt64, _ window: UInt64) -> parts_expiry {
                expiry {
                    $0.low_speed = 500
                    $0.low_speed_bytes = 100
                    $0.window = window
                    $0.window_bytes = 1_000
                    $0.moved = moved
                }
            }
            #expect(speed(1_049, 9_500).now && speed(1_049, 9_500).detail == Int32(FERRY_D_TIMEOUT_LOW_SPEED))
            #expect(!speed(1_050, 9_500).now && speed(1_050, 9_500).window && speed(1_050, 9_500).at == 10_500)
            #expect(!speed(1_000, 9_600).now && speed(1_000, 9_600).at == 10_100 && !speed(1_000, 9_600).window)
            #expect(speed(1_000, 0).window && speed(1_000, 0).at == 10_500, "it begins now")
        }
    }
}
