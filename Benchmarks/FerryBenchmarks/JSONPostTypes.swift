internal import FerryJSON

// The types of the posts and authors among the documents of `JSONShape`, decoded by both decoders and by hand.

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

/// A post as a search returns it.
struct PostMeta: Codable, JSONConvertible {
    let resultType: String
    let languageCode: String
}

extension PostMeta {
    init(json: JSON) throws {
        self.init(resultType: try json.value("resultType"), languageCode: try json.value("languageCode"))
    }
}

/// An entity in the text of a post.
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
