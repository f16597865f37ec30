"""Arithmetic that the detectors share: compiled functions, vectors in versions, who is nearest."""
