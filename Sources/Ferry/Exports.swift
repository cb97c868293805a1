/// `JSON` and `JSONSchema` stand in Ferry's own signatures: who imports Ferry has them.
@_exported public import FerryJSON
