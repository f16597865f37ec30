"""Tests of what recalls show over time."""
