package mediahttp

import _ "embed" // of the document below

// OpenAPI is the HTTP contract as an OpenAPI 3.1 document in JSON. It must not be changed.
//
//go:embed openapi.json
var OpenAPI []byte
