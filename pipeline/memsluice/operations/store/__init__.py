"""Compares the vector store with the log of what landed, and mends it: ``memsluice store``."""
