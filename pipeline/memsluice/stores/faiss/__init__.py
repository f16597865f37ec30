"""The embedded store: SQLite and FAISS."""
