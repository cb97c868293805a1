import FerryRedis
import Testing

@Suite struct RedisConfigurationTests {
    @Test func aURLNamesAServer() throws {
        let plain = try RedisConfiguration(url: "redis://cache.internal")
        #expect(plain.address == .host("cache.internal", port: 6379))
        #expect(plain.database == 0 && plain.user == nil && plain.password == nil)
        let full = try RedisConfiguration(url: "redis://kim:p%40ss@[::1]:7000/3")
        #expect(full.address == .host("::1", port: 7000))
        #expect(full.database == 3 && full.user == "kim" && full.password == "p@ss")
        let old = try RedisConfiguration(url: "redis://:secret@localhost/")
        #expect(old.user == nil && old.password == "secret" && old.database == 0)
        let socket = try RedisConfiguration(url: "unix:///run/redis/redis.sock?db=2")
        #expect(socket.address == .unixSocket("/run/redis/redis.sock") && socket.database == 2)
        #expect(plain.tls == nil && full.tls == nil && socket.tls == nil)
    }

    @Test func aURLNamesTheFilesOfTLS() throws {
        let plain = try RedisConfiguration(url: "rediss://:secret@h")
        #expect(plain.tls == RedisConfiguration.TLS() && plain.tls?.verification == .full)
        #expect(plain.address == .host("h", port: 6379) && plain.password == "secret")
        let full = try RedisConfiguration(url: "REDISS://h:1/2?cacert=/a%20b.pem&cert=c.pem&key=k.pem")
        var tls = RedisConfiguration.TLS()
        (tls.authorityFile, tls.certificateFile, tls.keyFile) = ("/a b.pem", "c.pem", "k.pem")
        #expect(full.tls == tls && full.address == .host("h", port: 1) && full.database == 2)
    }

    @Test(arguments: [
        "", "http://h", "redis://", "rediss://", "rediss://h?ca=/x", "rediss://h?key=/x", "rediss://h?cacert",
        "rediss://h?cert=", "rediss://h?cacert=/a#b", "redis://h#b", "rediss://h?cert=a&cert=b", "rediss://h?db=1",
        "redis://h/x", "redis://h:0", "redis://h:70000", "redis://kim@h", "unix://", "unix:///s?x=1", "redis://h/-1",
        "redis://h?db=1", "not a url",
    ])
    func anythingElseIsRefused(url: String) {
        #expect(throws: RedisURLError.self) { try RedisConfiguration(url: url) }
    }

    @Test func noTextOfItShowsThePassword() throws {
        let configuration = try RedisConfiguration(url: "redis://kim:canary@h/1")
        var dumped = ""
        dump(configuration, to: &dumped)
        for text in ["\(configuration)", String(reflecting: configuration), dumped] {
            #expect(!text.contains("canary") && !text.contains("kim"), "\(text)")
        }
        #expect(
            #expect(throws: RedisURLError.self) { try RedisConfiguration(url: "rediss://kim:12?canary@h") }
                .map { "\($0)".contains("canary") } == false)
    }
}
