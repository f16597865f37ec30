"""Memories for agent frameworks, each on :mod:`memsluice.memory`: one contract, and a thin coat for each."""
