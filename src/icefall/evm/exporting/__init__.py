"""The tables of an indexed chain as files for analysis: CSV, JSON lines and Parquet."""
