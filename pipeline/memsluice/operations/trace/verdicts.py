"""A verdict out of an audit record: only once its seal holds, and only if it is whole."""

from memsluice.envelope.keys import Keyring
from memsluice.envelope.records import verdict_from_bytes
from memsluice.envelope.verdict import Verdict
from memsluice.errors import SealError
from memsluice.events.records import Record


def read(keyring: Keyring, record: Record) -> Verdict | None:
    """Return an audit record's verdict; None where its seal does not hold, or it is none."""
    try:
        return verified(keyring, record)
    except SealError:
        return None


def verified(keyring: Keyring, record: Record) -> Verdict:
    """Return an audit record's verdict. Raises SealError where its seal does not hold, or it is none."""
    return verdict_from_bytes(keyring, (record.key or b"").decode("utf-8", "replace"), record.value or b"")
