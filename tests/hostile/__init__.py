"""Hostile inputs: a small share of the figure `hostile_failures`, what it found, and that it finds what is planted."""
