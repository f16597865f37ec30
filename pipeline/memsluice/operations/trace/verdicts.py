"""A verdict out of an audit record: only once its seal holds, and only if it is whole."""

from typing import Any

from memsluice.envelope.keys import Keyring
from memsluice.envelope.seals import open_
from memsluice.errors import SealError
from memsluice.events.names import VERDICT
from memsluice.events.records import Record
from memsluice.operations.trace.life import NEEDED


def read(keyring: Keyring, record: Record) -> dict[str, Any] | None:
    """Return an audit record's verdict; None where its seal does not hold, or it is none."""
    tenant = (record.key or b"").decode("utf-8", "replace")
    try:
        verdict = open_(keyring, tenant, VERDICT, record.value or b"")
    except SealError:
        return None
    whole = isinstance(verdict, dict) and verdict.keys() >= NEEDED and verdict["tenant"] == tenant
    return verdict if whole else None
