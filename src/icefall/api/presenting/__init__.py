"""From what readers tell to what the chain data interface shows: texts, money, parties, rows, pages."""
