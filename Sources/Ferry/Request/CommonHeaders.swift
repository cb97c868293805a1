import FerryTransport

/// The header fields of the configuration, checked and packed once.
struct CommonHeaders: Sendable {
    /// For the servers of the configuration, and everywhere when it names none.
    private(set) var fields = Headers()
    private(set) var packed = HeaderBlock()
    /// For all others: without what is secret.
    private(set) var publicFields = Headers()
    private(set) var packedPublic = HeaderBlock()

    /// None.
    init() {}

    init(_ configuration: NetworkConfiguration) throws(RequestError) {
        fields = configuration.headers
        let declared = configuration.declaredSecrets
        for field in configuration.headers {
            try packed.appendChecked(field.name, field.value, url: "")
            if SecretHeaders.contains(field.name, declared: declared) { continue }
            publicFields.append(field.name, field.value)
            packedPublic.append(field.name, field.value)
        }
    }
}
