"""Weaviate as the store."""
