/// `JSON`, `JSONSchema` and `CacheStorage` stand in Ferry's own signatures: who imports Ferry has them.
@_exported public import FerryCache
@_exported public import FerryJSON
