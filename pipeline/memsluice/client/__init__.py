"""The producer SDK: signs events, keys them by tenant, and tells the caller when the broker has them.

Its public names are exported by :mod:`memsluice`.
"""
