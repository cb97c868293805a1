/// The drafts of JSON Schema that are understood.
enum SchemaDialect: String {
    case draft7 = "draft-07"
    case draft2020 = "2020-12"

    /// By what `$schema` says.
    init?(_ text: String) {
        let name = text.hasSuffix("#") ? text.dropLast() : text[...]
        if name.hasSuffix("json-schema.org/draft-07/schema") {
            self = .draft7
        } else if name.hasSuffix("json-schema.org/draft/2020-12/schema") {
            self = .draft2020
        } else {
            return nil
        }
    }

    /// Why a keyword of the other draft is none of this one; nil if it is a keyword of both.
    func refusal(of keyword: String) -> String? {
        switch self {
        case .draft7 where Self.since2019.contains(keyword): "is no keyword of draft-07"
        case .draft2020 where keyword == "dependencies":
            "is a keyword of draft-07; in 2020-12 they are dependentRequired and dependentSchemas"
        case .draft2020 where keyword == "additionalItems":
            "is a keyword of draft-07; in 2020-12 it is items beside prefixItems"
        default: nil
        }
    }

    private static let since2019: Set<String> = [
        "$anchor", "$dynamicAnchor", "prefixItems", "minContains", "maxContains", "dependentRequired",
        "dependentSchemas", "unevaluatedItems", "unevaluatedProperties",
    ]

    /// What says something about a value without bounding it.
    static let annotations: Set<String> = [
        "$comment", "title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly",
        "contentEncoding", "contentMediaType", "contentSchema",
    ]
}
