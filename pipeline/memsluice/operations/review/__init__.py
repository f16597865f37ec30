"""Held writes in groups, an index of them on disk, and decisions about many: the desk of console and terminal."""
