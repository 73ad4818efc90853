"""Log lines, counters and rates."""
