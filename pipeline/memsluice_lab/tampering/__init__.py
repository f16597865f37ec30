"""Somebody with the store's master key: ten ways to change what recalls are given, each beside an honest entry."""
