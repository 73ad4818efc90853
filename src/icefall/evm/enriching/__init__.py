"""What blocks do not say: names, metadata, prices, reputations, signatures. Read slowly, beside the index."""
