"""Parked partitions: what stands still, and an operator's orders about it."""
