"""Operators' commands as the gate carries them out: one command a file."""
