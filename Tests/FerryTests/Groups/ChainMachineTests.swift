import Testing

@testable import Ferry
@testable import FerryTestSupport

@Suite struct ChainMachineTests {
    private enum Link: ChainLinkKind, Equatable {
        case step(String), look

        var isStep: Bool { self != .look }
    }

    private typealias Machine = ChainMachine<Link>

    /// A description of an action, for comparing.
    private func word(_ action: Machine.Action) -> String {
        switch action {
        case .perform(.step(let name)): name
        case .perform(.look): "look"
        case .succeed: "succeed"
        case .fail(let step): "fail \(step)"
        case .stop: "stop"
        }
    }

    @Test func linksComeOneAfterAnother() {
        var machine = Machine([.step("A"), .look, .step("B")])
        #expect(machine.total == 2)
        #expect(word(machine.next()) == "A")
        #expect(machine.finished == 0)
        #expect(word(machine.next()) == "look", "callbacks come before the next starts")
        #expect(machine.finished == 1)
        #expect(word(machine.next()) == "B")
        #expect(machine.step == 1)
        #expect(word(machine.next()) == "succeed")
        #expect(machine.finished == 2)
        #expect(word(machine.next()) == "stop", "it succeeds once")
    }

    @Test func aChainOfNothingSucceeds() {
        var machine = Machine([])
        #expect(word(machine.next()) == "succeed")
        #expect(machine.total == 0)
    }

    @Test func aFailureNamesTheStepAndNothingFollows() {
        var machine = Machine([.step("A"), .step("B"), .step("C")])
        _ = machine.next()
        _ = machine.next()
        #expect(word(machine.fail()) == "fail 1")
        #expect(word(machine.next()) == "stop")
        #expect(word(machine.fail()) == "stop", "it fails once")
    }

    @Test func aFailingLookBelongsToTheStepBefore() {
        var machine = Machine([.step("A"), .look, .step("B")])
        _ = machine.next()
        _ = machine.next()
        #expect(word(machine.fail()) == "fail 0")
    }

    @Test func addedStepsStandBeforeTheRest() {
        var machine = Machine([.step("A"), .step("inner"), .step("D")])
        _ = machine.next()
        _ = machine.next()
        machine.replaceStep(by: [.step("B"), .look, .step("C")])
        #expect(machine.total == 4)
        #expect(machine.finished == 1)
        var words: [String] = []
        while true {
            let next = word(machine.next())
            words.append(next)
            if next == "B" { #expect(machine.step == 1, "it takes the place of the step that added it") }
            if next == "succeed" { break }
        }
        #expect(words == ["B", "look", "C", "D", "succeed"])
        #expect(machine.total == 4)
    }

    @Test func aFailureBeforeTheFirstAddedStepIsThatOfTheStepThatAddedIt() {
        var machine = Machine([.step("A"), .step("inner"), .step("D")])
        _ = machine.next()
        _ = machine.next()
        machine.replaceStep(by: [.look, .step("B")])
        #expect(machine.step == 1 && machine.total == 3)
        #expect(word(machine.next()) == "look")
        #expect(machine.step == 1 && machine.finished == 1)
        #expect(word(machine.next()) == "B")
        #expect(machine.step == 1)
        #expect(word(machine.fail()) == "fail 1")
    }

    @Test func stepsCanBeAddedWithoutEnd() {
        var machine = Machine([.step("0")])
        for number in 1...10_000 {
            #expect(word(machine.next()) == "\(number - 1)")
            machine.replaceStep(by: [.step("page"), .step("\(number)")])
            #expect(word(machine.next()) == "page")
        }
        #expect(machine.total == 10_001)
        #expect(machine.finished == 9999)
    }

    @Test func aCancelCountsInEveryState() {
        for links in 0...3 {
            var machine = Machine([.step("A"), .look, .step("B")])
            for _ in 0..<links { _ = machine.next() }
            #expect(word(machine.interrupt()) == "stop")
            #expect(word(machine.next()) == "stop", "after \(links) links")
            #expect(word(machine.fail()) == "stop")
        }
    }
}
