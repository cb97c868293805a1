/// The texts of the documents of `JSONShape`.
enum JSONShapeText {
    private static func list(_ count: Int, _ element: (Int) -> String) -> String {
        "[\((0..<count).map(element).joined(separator: ","))]"
    }

    static var questions: String { String(decoding: JSONSample.medium.text, as: UTF8.self) }
    static func posts(_ count: Int) -> String { list(count, post) }
    static func authors(_ count: Int) -> String { list(count, author) }

    private static func post(_ id: Int) -> String {
        """
        {"meta":{"resultType":"recent","languageCode":"en"},"createdAt":"Sun Aug 31 00:29:\(10 + id % 50) +0000 2025",\
        "id":\(505_874_924_095_815_681 + id),"idText":"\(505_874_924_095_815_681 + id)",\
        "text":"Post number \(id) of many, with ünïcode, a #tag, a link and \\"quotes\\" in 140 characters or so",\
        "source":"<a href=\\"http://app.example.com/download/\(id % 7)\\" rel=\\"nofollow\\">An app</a>",\
        "truncated":false,"replyToPostId":\(id % 3 == 0 ? "null" : "\(id * 7)"),"replyToPostIdText":null,\
        "replyToAuthorId":null,"replyToAuthorIdText":null,"replyToScreenName":null,"author":\(author(id)),\
        "geo":null,"coordinates":null,"place":null,"contributors":null,"repostCount":\(id % 10),\
        "likeCount":\(id % 100),"entities":{"hashtags":[{"text":"tag\(id % 9)","indices":[\(id % 20),\(id % 20 + 5)]}],\
        "urls":[{"url":"http://s.example/\(id)","expandedUrl":"http://blog.example.com/entries/\(id).html",\
        "displayUrl":"blog.example.com/entri","indices":[78,100]}],"mentions":[{"screenName":"someone\(id)",\
        "name":"Someone Else","id":\(800 + id),"idText":"\(800 + id)","indices":[0,9]}]},"liked":false,\
        "reposted":\(id % 2 == 0),"language":"en"}
        """
    }

    private static func author(_ id: Int) -> String {
        """
        {"id":\(1_186_275_104 + id),"idText":"\(1_186_275_104 + id)","name":"Author \(id)","screenName":"author_\(id)",\
        "location":"A city, a country","bio":"Writes about the weather, trains and programs, mostly on Sundays",\
        "url":\(id % 2 == 0 ? "null" : "\"http://author\(id).example.com\""),"isProtected":false,\
        "followersCount":\(id * 3),"friendsCount":\(id * 2),"listedCount":\(id % 4),\
        "createdAt":"Sat Feb 16 13:46:47 +0000 2013","favouritesCount":\(id % 1000),"utcOffset":null,\
        "timeZone":"Berlin","geoEnabled":true,"verified":false,"postsCount":\(1769 + id),"language":"en",\
        "contributorsEnabled":false,"isTranslator":false,"translationEnabled":false,"backgroundColor":"C0DEED",\
        "backgroundImageUrl":"http://img.example.com/images/themes/theme1/bg\(id).png",\
        "backgroundImageUrlSecure":"https://img.example.com/images/themes/theme1/bg\(id).png",\
        "backgroundTile":false,"profileImageUrl":"http://img.example.com/profile/49\(id)/normal.jpeg",\
        "profileImageUrlSecure":"https://img.example.com/profile/49\(id)/normal.jpeg",\
        "profileBannerUrl":"https://img.example.com/banners/\(id)/1409","linkColor":"0084B4",\
        "sidebarBorderColor":"C0DEED","sidebarFillColor":"DDEEF6","textColor":"333333","useBackgroundImage":true,\
        "defaultProfile":true,"defaultProfileImage":false,"following":false,"followRequestSent":false,\
        "notifications":false,"isMuted":null}
        """
    }

    /// The same document with its keys in snake case.
    static func snake(_ text: String) -> String {
        renamingKeys(text) { key in
            var name = ""
            for character in key {
                if character.isUppercase { name += "_" }
                name += character.lowercased()
            }
            return name
        }
    }

    /// The same document with keys that begin with a capital letter.
    static func upper(_ text: String) -> String {
        renamingKeys(text) { $0.prefix(1).uppercased() + $0.dropFirst() }
    }

    /// The keys of these documents are the strings of letters followed by a colon.
    private static func renamingKeys(_ text: String, _ rename: (Substring) -> String) -> String {
        let parts = text.split(separator: "\"", omittingEmptySubsequences: false)
        return parts.indices.map { place in
            let isKey =
                place + 1 < parts.count && parts[place + 1].first == ":" && !parts[place].isEmpty
                && parts[place].allSatisfy(\.isLetter)
            return isKey ? rename(parts[place]) : String(parts[place])
        }.joined(separator: "\"")
    }

    static func catalog(_ count: Int) -> String {
        let names = (0..<count).map { "\"\(205_705_993 + $0)\":\"Area number \($0)\"" }.joined(separator: ",")
        let events = (0..<count).map { id in
            """
            "\(138_586_341 + id)":{"id":\(138_586_341 + id),"name":"30th anniversary, evening \(id)","logo":null,\
            "subTopicIds":[337184269,337184283],"topicIds":[324846099,107888604],"subjectCode":null}
            """
        }.joined(separator: ",")
        let performances = list(count) { id in
            let prices = list(5) {
                "{\"amount\":\(90250 + $0),\"audienceId\":337100890,\"seatCategoryId\":\(338_937_295 + $0)}"
            }
            let categories = list(5) { category in
                let areas = list(6) { "{\"areaId\":\(205_705_999 + $0),\"blockIds\":[]}" }
                return "{\"seatCategoryId\":\(338_937_235 + category),\"areas\":\(areas)}"
            }
            return """
                {"id":\(339_887_544 + id),"eventId":\(138_586_341 + id),"logo":null,"name":null,"prices":\(prices),\
                "seatCategories":\(categories),"start":\(1_372_701_600_000 + id),"venueCode":"PLEYEL_PLEYEL"}
                """
        }
        return """
            {"areaNames":{\(names)},"events":{\(events)},"performances":\(performances),"venues":{"PLEYEL":"A hall"}}
            """
    }

    static func outline(_ count: Int) -> String {
        let ring = { (ring: Int) in
            list(count / 40) { point in
                let angle = Double(ring * 1000 + point) * 0.001_234_567
                return "[\(-65.613_616_999_999_977 - angle),\(43.420_273_000_000_009 + angle)]"
            }
        }
        return """
            {"type":"FeatureCollection","features":[{"type":"Feature","properties":{"name":"A country"},\
            "geometry":{"type":"Polygon","coordinates":\(list(40, ring))}}]}
            """
    }

    static func events(_ count: Int) -> String {
        list(count) { id in
            let commits = list(2) { commit in
                """
                {"sha":"\(String(1_000_003 * (id + commit), radix: 16))d8e8fca2dc0f896fd7cb4cb0031ba249",\
                "author":{"email":"author\(id)@example.com","name":"Author \(id)"},\
                "message":"Fix number \(id)\\n\\nAgain",\
                "distinct":true,"url":"https://api.example.com/repos/someone/project\(id)/commits/\(commit)"}
                """
            }
            let push =
                #""pushId":\#(24_643_442 + id),"size":1,"ref":"refs/heads/master","head":"b8","commits":\#(commits)"#
            return """
                {"id":"\(1_652_857_722 + id)","type":"\(id % 3 == 0 ? "Issues" : "Push")Event","actor":{"id":\(id),\
                "login":"someone\(id)","gravatarId":"","url":"https://api.example.com/users/someone\(id)",\
                "avatarUrl":"https://avatars.example.com/u/\(id)?"},"repo":{"id":\(8_688_515 + id),\
                "name":"someone/project\(id)","url":"https://api.example.com/repos/someone/project\(id)"},\
                "payload":{\(id % 3 == 0 ? "\"action\":\"opened\",\"number\":\(id)" : push)},"isPublic":true,\
                "createdAt":"2025-02-13T12:34:\(10 + id % 50)Z"}
                """
        }
    }

    /// The first member is the number of members.
    static func members(_ width: Int, _ count: Int) -> String {
        list(count) { id in
            "{\((0..<width).map { "\"member\($0)\":\($0 == 0 ? width : id + $0)" }.joined(separator: ","))}"
        }
    }

    static func lenient(_ count: Int) -> String { list(count) { $0 % 2 == 0 ? "\($0)" : "\"text \($0)\"" } }

    static func decimals(_ count: Int, digits: Int) -> String {
        list(count) { id in
            let fraction = (0..<digits - 5).map { "\(($0 * 7 + id) % 9 + 1)" }.joined()
            return "\(10_000 + id).\(fraction)"
        }
    }

    static func counts(_ count: Int, of width: Int) -> String {
        list(count) { id in "{\((0..<width).map { "\"key \(id) \($0)\":\($0)" }.joined(separator: ","))}" }
    }

    static func texts(_ count: Int, of width: Int) -> String {
        list(count) { id in
            "{\((0..<width).map { "\"key \(id) \($0)\":\"the value of key \($0)\"" }.joined(separator: ","))}"
        }
    }

    static func enumCounts(_ count: Int) -> String {
        list(count) { id in
            "{\(CountKey.all.map { "\"\($0.rawValue)\":\(id)" }.joined(separator: ","))}"
        }
    }

    static func enums(_ count: Int) -> String { list(count) { "\"\(CountKey.all[$0 % 10].rawValue)\"" } }
    static func urls(_ count: Int) -> String { list(count) { "\"https://www.example.com/a/path/\($0)?query=\($0)\"" } }
    static func dates(_ count: Int) -> String { list(count) { "\"2025-02-13T12:\(10 + $0 % 50):\(10 + $0 % 49)Z\"" } }

    static func uuids(_ count: Int) -> String {
        list(count) { "\"E621E1F8-C36C-495A-93FC-0C247A\(String(0x100000 + $0, radix: 16, uppercase: true))\"" }
    }

    static func refused(_ count: Int) -> String {
        let texts = list(count) { _ in "\"x\"" }
        return "{\"left\":\(texts),\"right\":\(texts)}"
    }
}
