"""Lists of one address, in the form that suits the store: joined, cached or table by table."""
