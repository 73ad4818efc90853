"""Health checks and the loop that runs them."""
