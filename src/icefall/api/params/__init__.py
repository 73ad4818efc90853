"""From the text or JSON a caller sent to typed parameter structs."""
