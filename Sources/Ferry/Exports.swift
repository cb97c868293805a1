/// Ferry's own signatures use `JSON`, `JSONSchema` and `CacheStorage`, so importing Ferry also imports them.
@_exported public import FerryCache
@_exported public import FerryJSON
