"""The description of the interfaces: OpenAPI, the page at /docs, docs/api.md."""
