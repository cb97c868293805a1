internal import CFerryJSON

/// Puts into words what the checker found; the values of the document stay out of them.
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
    private var isString: Bool { ferry_json_tag(tape, finding.index) == JSONTag.string }

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
        case FERRY_JSON_SEVERAL_FIT: "\(kind) that fits several"
        case FERRY_JSON_WRONG_KIND
        where kind == "number" && !kinds(of: rule).contains(.number)
            && kinds(of: rule).contains(.integer):
            "number with a fraction"
        default: kind
        }
    }

    private var expected: String {
        switch finding.reason {
        case FERRY_JSON_MISSING: text(of: program.rules[Int(program.properties[Int(finding.property)].rule)])
        case FERRY_JSON_UNKNOWN: "no other keys"
        case FERRY_JSON_NOT_LISTED: listText
        case FERRY_JSON_BELOW, FERRY_JSON_ABOVE: kinds(of: rule).intersection([.number, .integer]).text + rangeText
        case FERRY_JSON_SHORT, FERRY_JSON_LONG: kind + lengthText
        case FERRY_JSON_NO_MATCH: "string matching \(program.patterns[finding.rule]?.text ?? "")"
        case FERRY_JSON_SEVERAL_FIT: "exactly one of the alternatives"
        default: text(of: rule)
        }
    }

    private func kinds(of rule: ferry_json_rule) -> SchemaKinds { SchemaKinds(rawValue: rule.kinds) }

    /// The kinds that a rule allows, those of its alternatives when it has some.
    private func text(of rule: ferry_json_rule) -> String {
        if rule.enumeration > 0 { return listText(of: rule) }
        return allKinds(of: rule).text
    }

    private func allKinds(of rule: ferry_json_rule) -> SchemaKinds {
        [(rule.any_of, rule.any_of_count), (rule.one_of, rule.one_of_count)].reduce(kinds(of: rule)) { kinds, list in
            guard list.1 > 0 else { return kinds }
            // The array of alternatives is there in any case.
            let alternatives = (list.0..<list.0 + list.1).map { place in
                allKinds(of: program.rules[Int(program.schema.alternatives![Int(place)])])
            }
            return kinds.intersection(alternatives.reduce([]) { $0.union($1) })
        }
    }

    private var listText: String { listText(of: rule) }

    private func listText(of rule: ferry_json_rule) -> String {
        let values = (program.constant(at: rule.enumeration).array.map { Array($0) } ?? []).map(\.description)
        guard values.count != 1 else { return values[0] }
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
        let low = isString ? rule.min_length : rule.min_items
        let high = isString ? rule.max_length : rule.max_items
        let parts = [low > 0 ? "at least \(low)" : nil, high < .max ? "at most \(high)" : nil]
        return " of " + parts.compactMap { $0 }.joined(separator: " and ") + (isString ? " characters" : " elements")
    }
}
