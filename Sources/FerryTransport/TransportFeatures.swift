/// What libcurl was built for; the bits are those of `FERRY_FEATURE_…` in CFerry.h.
package struct TransportFeatures: OptionSet, Sendable {
    package let rawValue: UInt32
    package init(rawValue: UInt32) { self.rawValue = rawValue }

    package static let http2 = TransportFeatures(rawValue: 1 << 0)
    package static let ntlm = TransportFeatures(rawValue: 1 << 1)
    package static let negotiate = TransportFeatures(rawValue: 1 << 2)
    /// No cookies for all of `.com`.
    package static let publicSuffixes = TransportFeatures(rawValue: 1 << 3)
}
