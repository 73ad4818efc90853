"""Store engines: the protocols, SQLite, locks, migrations, and named SQL statements."""
