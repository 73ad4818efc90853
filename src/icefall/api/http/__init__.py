"""Requests to responses: routing, parameters, access, JSON-RPC, pages and streams, for every interface."""
