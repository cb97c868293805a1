internal import FerryJSON

// The types of the catalog, the outline and the events among the documents of `JSONShape`, decoded by both decoders and
// by hand.

/// Dictionaries of objects by number, and arrays of objects.
struct Catalog: Codable, JSONConvertible {
    let areaNames: [String: String]
    let events: [String: CatalogEvent]
    let performances: [Performance]
    let venues: [String: String]
}

extension Catalog {
    init(json: JSON) throws {
        self.init(
            areaNames: try json.value("areaNames"), events: try json.value("events"),
            performances: try json.value("performances"), venues: try json.value("venues"))
    }
}

/// A performance's event.
struct CatalogEvent: Codable, JSONConvertible {
    let id: Int
    let name: String
    let logo: String?
    let subTopicIds: [Int]
    let topicIds: [Int]
    let subjectCode: String?
}

extension CatalogEvent {
    init(json: JSON) throws {
        self.init(
            id: try json.value("id"), name: try json.value("name"), logo: try json.value("logo"),
            subTopicIds: try json.value("subTopicIds"), topicIds: try json.value("topicIds"),
            subjectCode: try json.value("subjectCode"))
    }
}

/// One date of an event.
struct Performance: Codable, JSONConvertible {
    let id: Int
    let eventId: Int
    let logo: String?
    let name: String?
    let prices: [Price]
    let seatCategories: [SeatCategory]
    let start: Int
    let venueCode: String
}

extension Performance {
    init(json: JSON) throws {
        self.init(
            id: try json.value("id"), eventId: try json.value("eventId"), logo: try json.value("logo"),
            name: try json.value("name"), prices: try json.value("prices"),
            seatCategories: try json.value("seatCategories"), start: try json.value("start"),
            venueCode: try json.value("venueCode"))
    }
}

/// The price of a seat.
struct Price: Codable, JSONConvertible {
    let amount: Int
    let audienceId: Int
    let seatCategoryId: Int
}

extension Price {
    init(json: JSON) throws {
        self.init(
            amount: try json.value("amount"), audienceId: try json.value("audienceId"),
            seatCategoryId:
                try json.value("seatCategoryId"))
    }
}

/// Seats of one price.
struct SeatCategory: Codable, JSONConvertible {
    let seatCategoryId: Int
    let areas: [Area]
}

extension SeatCategory {
    init(json: JSON) throws {
        self.init(seatCategoryId: try json.value("seatCategoryId"), areas: try json.value("areas"))
    }
}

/// A group of seats.
struct Area: Codable, JSONConvertible {
    let areaId: Int
    let blockIds: [Int]
}

extension Area {
    init(json: JSON) throws {
        self.init(areaId: try json.value("areaId"), blockIds: try json.value("blockIds"))
    }
}

/// Polygons of thousands of points.
struct Outline: Codable, JSONConvertible {
    let type: String
    let features: [Feature]
}

extension Outline {
    init(json: JSON) throws {
        self.init(type: try json.value("type"), features: try json.value("features"))
    }
}

/// A polygon and its name.
struct Feature: Codable, JSONConvertible {
    let type: String
    let properties: [String: String]
    let geometry: Geometry
}

extension Feature {
    init(json: JSON) throws {
        self.init(
            type: try json.value("type"), properties: try json.value("properties"), geometry: try json.value("geometry")
        )
    }
}

/// The points of a polygon.
struct Geometry: Codable, JSONConvertible {
    let type: String
    let coordinates: [[[Double]]]
}

extension Geometry {
    init(json: JSON) throws {
        self.init(type: try json.value("type"), coordinates: try json.value("coordinates"))
    }
}

/// An event in a repository.
struct HostingEvent: Codable, JSONConvertible {
    let id: String
    let type: String
    let actor: Actor
    let repo: Repository
    let payload: Payload
    let isPublic: Bool
    let createdAt: String
}

extension HostingEvent {
    init(json: JSON) throws {
        self.init(
            id: try json.value("id"), type: try json.value("type"), actor: try json.value("actor"),
            repo: try json.value("repo"), payload: try json.value("payload"), isPublic: try json.value("isPublic"),
            createdAt: try json.value("createdAt"))
    }
}

/// The actor of an event.
struct Actor: Codable, JSONConvertible {
    let id: Int
    let login: String
    let gravatarId: String
    let url: String
    let avatarUrl: String
}

extension Actor {
    init(json: JSON) throws {
        self.init(
            id: try json.value("id"), login: try json.value("login"), gravatarId: try json.value("gravatarId"),
            url: try json.value("url"), avatarUrl: try json.value("avatarUrl"))
    }
}

/// The repository of an event.
struct Repository: Codable, JSONConvertible {
    let id: Int
    let name: String
    let url: String
}

extension Repository {
    init(json: JSON) throws {
        self.init(id: try json.value("id"), name: try json.value("name"), url: try json.value("url"))
    }
}

/// The payload, which differs from event to event.
struct Payload: Codable, JSONConvertible {
    let pushId: Int?
    let size: Int?
    let ref: String?
    let head: String?
    let commits: [Commit]?
    let action: String?
    let number: Int?
}

extension Payload {
    init(json: JSON) throws {
        self.init(
            pushId: try json.value("pushId"), size: try json.value("size"), ref: try json.value("ref"),
            head: try json.value("head"), commits: try json.value("commits"), action: try json.value("action"),
            number: try json.value("number"))
    }
}

/// A commit.
struct Commit: Codable, JSONConvertible {
    let sha: String
    let author: CommitAuthor
    let message: String
    let distinct: Bool
    let url: String
}

extension Commit {
    init(json: JSON) throws {
        self.init(
            sha: try json.value("sha"), author: try json.value("author"), message: try json.value("message"),
            distinct: try json.value("distinct"), url: try json.value("url"))
    }
}

/// The author of a commit.
struct CommitAuthor: Codable, JSONConvertible {
    let email: String
    let name: String
}

extension CommitAuthor {
    init(json: JSON) throws {
        self.init(email: try json.value("email"), name: try json.value("name"))
    }
}
