"""Smoothed recall (SMSR, seed 003): several runs, each shown some of what was recalled, and the majority's verdict."""
