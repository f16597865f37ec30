"""Admission limits of a policy, and what is invisible in a text: both recorded, the former refused."""

from memsluice.envelope.verdict import Decision, Finding
from memsluice.events.models import Write
from memsluice.gate.policy.model import Policy
from memsluice.gate.unicode import controls


def check(write: Write, policy: Policy) -> list[Finding]:
    """Return findings on size and on zero-width, bidirectional and other invisible characters."""
    findings = []
    size = len(write.content.encode())
    if size > policy.content_bytes_max:
        detail = {"bytes": size, "bytes_max": policy.content_bytes_max}
        findings.append(Finding("limits.content_bytes", Decision.REJECT, detail))
    invisible = controls(write.content)
    if invisible:
        names = sorted({name for name, _ in invisible})[:8]
        findings.append(
            Finding("limits.invisible_characters", Decision.ACCEPT, {"count": len(invisible), "names": names})
        )
    return findings
