"""Operators' commands on their way: where they are given, who signs, what the gate answered."""
