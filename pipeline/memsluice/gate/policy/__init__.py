"""Policies: the model, its checks, its differences."""
