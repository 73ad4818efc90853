"""API keys, rate limits and page tokens: who may call the APIs, and how much."""
