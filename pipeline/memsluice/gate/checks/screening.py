"""A content that screening itself fails on, by a defect of the gate: it is held, and the stream goes on.

Without this one sender's text would stop every tenant of its partition for as long as the defect lasts.
"""

from memsluice.envelope.verdict import Decision, Finding

FAILED = "screening.failed"


def failed(kind: str, asks: Decision) -> Finding:
    """Return that screening failed with an error of this kind. Its words may quote the content, so nobody is told."""
    return Finding(FAILED, asks, {"error": kind})
