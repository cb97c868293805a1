public struct RetryPolicy: Sendable { public static var none: RetryPolicy { RetryPolicy() }; var isOn: Bool { false } }
public struct RetryBudget: Sendable { public static var standard: RetryBudget { RetryBudget() } }
public struct AddressPolicy: Sendable { public static var any: AddressPolicy { AddressPolicy() } }
public struct ProxyConfiguration: Sendable { public static var none: ProxyConfiguration { ProxyConfiguration() } }
public struct CredentialChallenge: Sendable {}
public struct Credential: Sendable {}
extension RequestBody { var isReplayable: Bool { true } }
