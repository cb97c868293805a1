import CCoreParts
import FerryTransport

@testable import Ferry

/// The first line is a base URL, the rest a path. A request to the joined URL goes to the host in it, for every parser:
/// ours, the core's and libcurl's.
func checkURL(_ text: String) throws {
    let end = text.firstIndex(of: "\n") ?? text.endIndex
    let path = String(text[end...].dropFirst())
    let base = try? BaseURL(String(text[..<end]))
    if let base { try checkHost(base.whole, "the base") }
    guard let joined = try? URLJoiner.join(path, to: base) else { return }
    guard let parts = try checkHost(joined.url, "the joined URL") else { return }
    try promise(!parts.hasUserinfo, "user and password are left in \(joined.url)")
    let isAbsolute = Array(path.utf8).withUnsafeBufferPointer { URLJoiner.schemeLength($0) } != nil
    if isAbsolute {
        // Without the user and the password the host is the same.
        guard let own = try? URLParts(path) else { return }
        try promise(own.isSameOrigin(as: parts), "\(path) is asked of \(parts.host)")
    } else {
        let base = try promised(base, "a path without a base is a URL")
        let own = try promised(try? URLParts(base.whole), "a base that is none: \(base.whole)")
        try promise(own.isSameOrigin(as: parts), "\(path) leads from \(base.whole) to \(joined.url)")
        try promise(joined.url.hasPrefix(base.prefix), "\(path) climbs above \(base.prefix)")
    }
}

/// libcurl's reading of the URL, if both the core and libcurl accept it: the same host for both.
@discardableResult
private func checkHost(_ url: String, _ what: String) throws -> URLParts? {
    var route = parts_route()
    url.withCString { parts_route_make(&route, $0, url.utf8.count) }
    defer { parts_route_free(&route) }
    guard let origin = route.origin, let target = route.target, let parts = try? URLParts(url) else { return nil }
    // The connection goes where libcurl's reading of the core's origin leads.
    let connected = try promised(
        try? URLParts(String(cString: origin)), "\(what): no origin in \(String(cString: origin))")
    try promise(connected.isSameOrigin(as: parts), "\(what): \(url) is asked of \(connected.host):\(connected.port)")
    try promise(!connected.hasUserinfo, "\(what): \(url) has a user in its origin")
    try promise(target[0] == CChar(UInt8(ascii: "/")), "\(what): \(url) asks for no path")
    for byte in String(cString: target).utf8 { try promise(byte > 0x20 && byte != 0x7F, "\(what): a blank in \(url)") }
    return parts
}
