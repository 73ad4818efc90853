"""Text forms: CB58, bech32, checksummed hex, durations, Go's quoting, and JSON that msgspec refuses."""
