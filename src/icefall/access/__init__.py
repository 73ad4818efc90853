"""Who may ask, and how much: API keys, rate limits, and the page tokens that only we can issue."""
