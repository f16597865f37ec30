"""Where entries land: one interface, Weaviate behind it on a real deployment, FAISS over SQLite in embedded mode."""
