"""Faults against the real components: a workload that remembers what was acknowledged, a nemesis, and a checker."""
