"""The asset chain (AVM): values, bytes, JSON, and the UTXOs that transactions produce and consume."""
