internal import FerryJSON

// The types that the documents of `JSONShapes` are decoded into, by both decoders and by hand.

/// An object of 23 keys, with objects and arrays in it.
struct Post: Codable, JSONConvertible {
    let meta: PostMeta
    let createdAt: String
    let id: Int
    let idText: String
    let text: String
    let source: String
    let truncated: Bool
    let replyToPostId: Int?
    let replyToPostIdText: String?
    let replyToAuthorId: Int?
    let replyToAuthorIdText: String?
    let replyToScreenName: String?
    let author: Author
    let geo: String?
    let coordinates: [Double]?
    let place: String?
    let contributors: [String]?
    let repostCount: Int
    let likeCount: Int
    let entities: PostEntities
    let liked: Bool
    let reposted: Bool
    let language: String
}

extension Post {
    init(json: JSON) throws {
        self.init(
            meta: try json.value("meta"), createdAt: try json.value("createdAt"), id: try json.value("id"),
            idText: try json.value("idText"), text: try json.value("text"), source: try json.value("source"),
            truncated: try json.value("truncated"), replyToPostId: try json.value("replyToPostId"),
            replyToPostIdText: try json.value("replyToPostIdText"),
            replyToAuthorId: try json.value("replyToAuthorId"),
            replyToAuthorIdText: try json.value("replyToAuthorIdText"),
            replyToScreenName: try json.value("replyToScreenName"),
            author:
                try json.value("author"), geo: try json.value("geo"), coordinates: try json.value("coordinates"),
            place: try json.value("place"), contributors: try json.value("contributors"),
            repostCount: try json.value("repostCount"), likeCount: try json.value("likeCount"),
            entities: try json.value("entities"), liked: try json.value("liked"), reposted: try json.value("reposted"),
            language: try json.value("language"))
    }
}

/// A flat object of 40 keys.
struct Author: Codable, JSONConvertible {
    let id: Int
    let idText: String
    let name: String
    let screenName: String
    let location: String
    let bio: String
    let url: String?
    let isProtected: Bool
    let followersCount: Int
    let friendsCount: Int
    let listedCount: Int
    let createdAt: String
    let favouritesCount: Int
    let utcOffset: Int?
    let timeZone: String?
    let geoEnabled: Bool
    let verified: Bool
    let postsCount: Int
    let language: String
    let contributorsEnabled: Bool
    let isTranslator: Bool
    let translationEnabled: Bool
    let backgroundColor: String
    let backgroundImageUrl: String
    let backgroundImageUrlSecure: String
    let backgroundTile: Bool
    let profileImageUrl: String
    let profileImageUrlSecure: String
    let profileBannerUrl: String?
    let linkColor: String
    let sidebarBorderColor: String
    let sidebarFillColor: String
    let textColor: String
    let useBackgroundImage: Bool
    let defaultProfile: Bool
    let defaultProfileImage: Bool
    let following: Bool
    let followRequestSent: Bool
    let notifications: Bool
    let isMuted: Bool?
}

extension Author {
    init(json: JSON) throws {
        self.init(
            id: try json.value("id"), idText: try json.value("idText"), name: try json.value("name"),
            screenName: try json.value("screenName"), location: try json.value("location"), bio: try json.value("bio"),
            url: try json.value("url"), isProtected: try json.value("isProtected"),
            followersCount: try json.value("followersCount"), friendsCount: try json.value("friendsCount"),
            listedCount: try json.value("listedCount"), createdAt: try json.value("createdAt"),
            favouritesCount: try json.value("favouritesCount"), utcOffset: try json.value("utcOffset"),
            timeZone: try json.value("timeZone"), geoEnabled: try json.value("geoEnabled"),
            verified: try json.value("verified"), postsCount: try json.value("postsCount"),
            language: try json.value("language"), contributorsEnabled: try json.value("contributorsEnabled"),
            isTranslator:
                try json.value("isTranslator"), translationEnabled: try json.value("translationEnabled"),
            backgroundColor: try json.value("backgroundColor"),
            backgroundImageUrl: try json.value("backgroundImageUrl"),
            backgroundImageUrlSecure: try json.value("backgroundImageUrlSecure"),
            backgroundTile: try json.value("backgroundTile"),
            profileImageUrl: try json.value("profileImageUrl"),
            profileImageUrlSecure: try json.value("profileImageUrlSecure"),
            profileBannerUrl: try json.value("profileBannerUrl"),
            linkColor: try json.value("linkColor"), sidebarBorderColor: try json.value("sidebarBorderColor"),
            sidebarFillColor: try json.value("sidebarFillColor"), textColor: try json.value("textColor"),
            useBackgroundImage: try json.value("useBackgroundImage"), defaultProfile: try json.value("defaultProfile"),
            defaultProfileImage: try json.value("defaultProfileImage"),
            following: try json.value("following"), followRequestSent: try json.value("followRequestSent"),
            notifications: try json.value("notifications"), isMuted: try json.value("isMuted"))
    }
}

/// What a search says of a post.
struct PostMeta: Codable, JSONConvertible {
    let resultType: String
    let languageCode: String
}

extension PostMeta {
    init(json: JSON) throws {
        self.init(resultType: try json.value("resultType"), languageCode: try json.value("languageCode"))
    }
}

/// What stands in the text of a post.
struct PostEntities: Codable, JSONConvertible {
    let hashtags: [Hashtag]
    let urls: [PostLink]
    let mentions: [Mention]
}

extension PostEntities {
    init(json: JSON) throws {
        self.init(
            hashtags: try json.value("hashtags"), urls: try json.value("urls"), mentions: try json.value("mentions"))
    }
}

/// A tag in a text.
struct Hashtag: Codable, JSONConvertible {
    let text: String
    let indices: [Int]
}

extension Hashtag {
    init(json: JSON) throws {
        self.init(text: try json.value("text"), indices: try json.value("indices"))
    }
}

/// A link in a text.
struct PostLink: Codable, JSONConvertible {
    let url: String
    let expandedUrl: String
    let displayUrl: String
    let indices: [Int]
}

extension PostLink {
    init(json: JSON) throws {
        self.init(
            url: try json.value("url"), expandedUrl: try json.value("expandedUrl"),
            displayUrl: try json.value("displayUrl"), indices: try json.value("indices"))
    }
}

/// A name in a text.
struct Mention: Codable, JSONConvertible {
    let screenName: String
    let name: String
    let id: Int
    let idText: String
    let indices: [Int]
}

extension Mention {
    init(json: JSON) throws {
        self.init(
            screenName: try json.value("screenName"), name: try json.value("name"), id: try json.value("id"),
            idText: try json.value("idText"), indices: try json.value("indices"))
    }
}

/// 7 of the 23 keys of a post.
struct PostHead: Codable, JSONConvertible {
    let createdAt: String
    let id: Int
    let text: String
    let repostCount: Int
    let likeCount: Int
    let liked: Bool
    let language: String
}

extension PostHead {
    init(json: JSON) throws {
        self.init(
            createdAt: try json.value("createdAt"), id: try json.value("id"), text: try json.value("text"),
            repostCount: try json.value("repostCount"), likeCount: try json.value("likeCount"),
            liked: try json.value("liked"), language: try json.value("language"))
    }
}

/// 7 of the 40 keys of an author.
struct AuthorHead: Codable, JSONConvertible {
    let id: Int
    let name: String
    let screenName: String
    let followersCount: Int
    let verified: Bool
    let profileImageUrl: String
    let textColor: String
}

extension AuthorHead {
    init(json: JSON) throws {
        self.init(
            id: try json.value("id"), name: try json.value("name"), screenName: try json.value("screenName"),
            followersCount: try json.value("followersCount"), verified: try json.value("verified"),
            profileImageUrl: try json.value("profileImageUrl"), textColor: try json.value("textColor"))
    }
}

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

/// What a seat costs.
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

/// Where seats are.
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

/// What happened in a repository.
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

/// Who did it.
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

/// Where it happened.
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

/// What it was, which differs from event to event.
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

/// One change.
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

/// Who made it.
struct CommitAuthor: Codable, JSONConvertible {
    let email: String
    let name: String
}

extension CommitAuthor {
    init(json: JSON) throws {
        self.init(email: try json.value("email"), name: try json.value("name"))
    }
}
