internal import CFerryJSON

/// Describes what the checker found, without values of the document.
struct SchemaReport {
    private let program: SchemaProgram
    private let tape: ferry_json_tape
    private let finding: ferry_json_mismatch

    init(program: SchemaProgram, tape: ferry_json_tape, mismatch: ferry_json_mismatch) {
        self.program = program
        self.tape = tape
        finding = mismatch
    }

    var mismatch: JSONMismatch {
        var path = JSONPath(to: finding.index, in: tape)
        if finding.reason == FERRY_JSON_MISSING {
            path.append(.key(program.properties[Int(finding.property)].key))
        }
        return JSONMismatch(path: path.description, expected: expected, found: found)
    }

    private var rule: ferry_json_rule { program.rules[Int(finding.rule)] }

    private var kind: String {
        switch ferry_json_tag(tape, finding.index) {
        case JSONTag.string: "string"
        case JSONTag.signed, JSONTag.unsigned, JSONTag.double: "number"
        case JSONTag.yes, JSONTag.no: "bool"
        case JSONTag.array: "array"
        case JSONTag.object: "object"
        default: "null"
        }
    }

    private var found: String {
        switch finding.reason {
        case FERRY_JSON_MISSING: "nothing"
        case FERRY_JSON_UNKNOWN: "a key that is not named"
        case FERRY_JSON_BELOW: "lower number"
        case FERRY_JSON_ABOVE: "higher number"
        case FERRY_JSON_SHORT: "shorter \(kind)"
        case FERRY_JSON_LONG: "longer \(kind)"
        case FERRY_JSON_NOT_LISTED, FERRY_JSON_NO_MATCH: "another \(kind)"
        case FERRY_JSON_SEVERAL_FIT: "\(kind) that matches several"
        case FERRY_JSON_NEGATED: "\(kind) that matches it"
        case FERRY_JSON_NOT_MULTIPLE, FERRY_JSON_FORMAT: "another \(kind)"
        case FERRY_JSON_EQUAL_ITEMS: "equal elements"
        case FERRY_JSON_FEW_CONTAINED: "fewer"
        case FERRY_JSON_MANY_CONTAINED: "more"
        case FERRY_JSON_WRONG_KIND
        where kind == "number" && !kinds(of: rule).contains(.number)
            && kinds(of: rule).contains(.integer):
            "number with a fraction"
        default: kind
        }
    }

    private var expected: String {
        switch finding.reason {
        case FERRY_JSON_MISSING: missingText
        case FERRY_JSON_UNKNOWN: "no other keys"
        case FERRY_JSON_NOT_LISTED: listText
        case FERRY_JSON_BELOW, FERRY_JSON_ABOVE: kinds(of: rule).intersection([.number, .integer]).text + rangeText
        case FERRY_JSON_SHORT, FERRY_JSON_LONG: kind + lengthText
        case FERRY_JSON_NO_MATCH: "string matching \(program.patterns[finding.rule]?.text ?? "")"
        case FERRY_JSON_SEVERAL_FIT: "exactly one of the alternatives"
        case FERRY_JSON_NEGATED: "a value that does not match the schema of \"not\""
        case FERRY_JSON_NOT_MULTIPLE: "multiple of \(program.constant(at: extra.multiple_of).description)"
        case FERRY_JSON_FORMAT: "string of the format \(program.formats[finding.rule]?.rawValue ?? "")"
        case FERRY_JSON_EQUAL_ITEMS: "array of unique elements"
        case FERRY_JSON_FEW_CONTAINED: "array with at least \(extra.min_contained) that \(containedText)"
        case FERRY_JSON_MANY_CONTAINED: "array with at most \(extra.max_contained) that \(containedText)"
        case FERRY_JSON_LOW_STACK: "less nesting, for the stack of this thread"
        case FERRY_JSON_MUCH_WORK: "a document that takes less work to check"
        default: text(of: rule)
        }
    }

    private func kinds(of rule: ferry_json_rule) -> SchemaKinds { SchemaKinds(rawValue: rule.kinds) }

    private var extra: ferry_json_extra { program.extra(of: rule) ?? ferry_json_extra() }

    private var missingText: String {
        let rule = program.properties[Int(finding.property)].rule
        return rule == FERRY_JSON_NO_RULE ? SchemaKinds.any.text : text(of: program.rules[Int(rule)])
    }

    private var containedText: String {
        let text = text(of: program.rules[Int(extra.contained)])
        return text == SchemaKinds.any.text ? "fit" : "are " + text
    }

    /// The kinds that a rule allows; for alternatives the kinds of all of them.
    private func text(of rule: ferry_json_rule) -> String {
        if rule.enumeration > 0 { return listText(of: rule) }
        var steps = 1000
        return allKinds(of: rule, depth: 0, &steps).text
    }

    /// The kinds that a rule and its references allow. Rules can refer to one another in very many ways: after a number
    /// of steps only the rule's own kinds count.
    private func allKinds(of rule: ferry_json_rule, depth: Int, _ steps: inout Int) -> SchemaKinds {
        var kinds = kinds(of: rule)
        steps -= 1
        guard let extra = program.extra(of: rule), steps > 0, depth < 12 else { return kinds }
        if extra.reference != FERRY_JSON_NO_RULE {
            kinds.formIntersection(allKinds(of: program.rules[Int(extra.reference)], depth: depth + 1, &steps))
        }
        for other in program.rules(extra.all_of) {
            kinds.formIntersection(allKinds(of: other, depth: depth + 1, &steps))
        }
        for list in [extra.any_of, extra.one_of] where list.count > 0 {
            var union: SchemaKinds = []
            for other in program.rules(list) { union.formUnion(allKinds(of: other, depth: depth + 1, &steps)) }
            kinds.formIntersection(union)
        }
        return kinds
    }

    private var listText: String { listText(of: rule) }

    private func listText(of rule: ferry_json_rule) -> String {
        let values = (program.constant(at: rule.enumeration).array.map { Array($0) } ?? []).map(\.description)
        guard values.count > 1 else { return values.first ?? "nothing" }
        return "one of " + values.prefix(8).joined(separator: ", ") + (values.count > 8 ? ", …" : "")
    }

    private var rangeText: String {
        let low = rule.minimum > 0 ? program.constant(at: rule.minimum).description : nil
        let high = rule.maximum > 0 ? program.constant(at: rule.maximum).description : nil
        let parts = [
            low.map { (rule.exclusive_minimum ? "above " : "at least ") + $0 },
            high.map { (rule.exclusive_maximum ? "below " : "at most ") + $0 },
        ]
        return " " + parts.compactMap { $0 }.joined(separator: " and ")
    }

    private var lengthText: String {
        let (low, high, unit): (UInt32, UInt32, String) =
            switch ferry_json_tag(tape, finding.index) {
            case JSONTag.string: (rule.min_length, rule.max_length, "characters")
            case JSONTag.object: (extra.min_members, extra.max_members, "members")
            default: (rule.min_items, rule.max_items, "elements")
            }
        let parts = [low > 0 ? "at least \(low)" : nil, high < .max ? "at most \(high)" : nil]
        return " of " + parts.compactMap { $0 }.joined(separator: " and ") + " " + unit
    }
}
