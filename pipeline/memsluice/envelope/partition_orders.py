"""What is told of a parked partition, and the signed order by which it goes on.

A worker tells the state; nobody trusts it further than to show it. An order is signed with the key of an operator for
all tenants, as a partition has events of many, so that it names a person; and it names the one failure that it answers:
a failure's id is new each time a partition is parked, so no order is obeyed twice, nor one about another failure.
"""

from dataclasses import asdict, dataclass
from hashlib import sha256
from typing import Any, Literal, Protocol

from memsluice.envelope import dsse
from memsluice.envelope.codec import canonical, from_json
from memsluice.envelope.keys import Keyring
from memsluice.envelope.plain import checked
from memsluice.envelope.registry import ANY, Registry, Role, check_signing_time, credential_of
from memsluice.errors import InputError, NotPermitted, SealError
from memsluice.events.names import PARTITION_ORDER

Action = Literal["resume", "acknowledge-gap"]
RESUME: Action = "resume"
ACKNOWLEDGE: Action = "acknowledge-gap"
REASON_CHARS_MAX = 600


@dataclass(frozen=True, slots=True)
class Missing:
    """Records of a topic's partition that are missing, both ends included."""

    topic: str
    first: int
    last: int


@dataclass(frozen=True, slots=True)
class PartitionState:
    """How one partition of a stage gets on. ``since_ms`` is Unix ms.

    Parked: ``error`` and ``reason`` say why, ``offset`` of ``topic`` is the input record that could not be taken (None
    where it was no record), ``missing`` what is lost where that can be told. Running: ``failure`` is the one that is
    over, and ``kid`` the key of the order that ended it ("": none, it went on after a restart).
    """

    stage: str
    partition: int
    parked: bool
    failure: str
    error: str
    reason: str
    topic: str
    offset: int | None
    missing: Missing | None
    since_ms: int
    replica: str
    kid: str = ""


@dataclass(frozen=True, slots=True)
class PartitionOrder:
    """An operator's word about one failure. ``missing`` is what is known to be lost; None for ``resume``."""

    action: Action
    stage: str
    partition: int
    failure: str
    missing: Missing | None
    why: str
    given_ms: int


@dataclass(frozen=True, slots=True)
class Accepted:
    """A loss that somebody accepted: the order, the operator's key that signed it, and when the broker took it."""

    order: PartitionOrder
    kid: str
    append_ms: int


def failure_id(
    stage: str, partition: int, topic: str, offset: int | None, reason: str, since_ms: int, salt: str
) -> str:
    """Return the id of one failure: another one each time, whatever is the same about it."""
    text = canonical([stage, partition, topic, offset, reason, since_ms, salt])
    return sha256(text).hexdigest()[:32]


def state_key(stage: str, partition: int) -> bytes:
    """Return the key under which a worker tells a partition's state."""
    return f"{stage}/{partition}".encode()


def order_key(order: PartitionOrder) -> bytes:
    """Return an order's key: one of its own, so that compaction keeps it."""
    return f"order/{order.stage}/{order.partition}/{order.failure}/{order.action}".encode()


def state_to_bytes(state: PartitionState) -> bytes:
    """Return a state's record value."""
    return canonical(asdict(state))


def state_from_bytes(data: bytes | None) -> PartitionState | None:
    """Read a state; None for what is none."""
    try:
        value = from_json(data or b"")
        missing = _missing(value.pop("missing"))
        return PartitionState(**checked(PartitionState, value), missing=missing)
    except (InputError, KeyError, TypeError, ValueError, AttributeError):
        return None


class Keys(Protocol):
    """The gate's keys and registry, as they are now (:class:`memsluice.keystore.store.KeyStore`)."""

    def keyring(self) -> Keyring:
        """Return the keyring."""

    def registry(self) -> Registry:
        """Return the registry."""

    def refresh(self) -> None:
        """Look at the files now: an order may be by a key that was made a moment ago."""


def order_to_bytes(signer: dsse.Signer, order: PartitionOrder) -> bytes:
    """Return an order's record value, signed."""
    return canonical(dsse.sign(PARTITION_ORDER, canonical(asdict(order)), [signer]))


def order_from_bytes(keys: Keys, data: bytes | None, append_ms: int) -> tuple[PartitionOrder, str]:
    """Return a verified order and the key id that signed it. Raises SealError.

    ``append_ms`` (Unix ms) is when the broker appended it.
    """
    try:
        envelope = dsse.parse(from_json(data or b""))
        kid = envelope.signatures[0].kid if len(envelope.signatures) == 1 else ""
        check_operator(kid, keys, append_ms, "say how a partition goes on")
        value = from_json(dsse.verify(envelope, PARTITION_ORDER, keys.keyring().direct))
    except InputError as error:
        raise SealError(f"an order about a partition does not verify: {error}") from None
    try:
        missing = _missing(value.pop("missing"))
        order = PartitionOrder(**checked(PartitionOrder, value), missing=missing)
        if order.action not in (RESUME, ACKNOWLEDGE) or (order.action == ACKNOWLEDGE) is not (missing is not None):
            raise ValueError("what it says to do")
    except (KeyError, TypeError, ValueError, AttributeError) as error:
        raise SealError(f"an order about a partition is not of this version ({type(error).__name__})") from None
    return order, kid


def accepted_from_bytes(keys: Keys, data: bytes | None, append_ms: int) -> Accepted | None:
    """Read an acknowledged loss; None for what is none, or does not verify."""
    try:
        order, kid = order_from_bytes(keys, data, append_ms)
    except SealError:
        return None
    return Accepted(order, kid, append_ms) if order.action == ACKNOWLEDGE else None


def check_operator(kid: str, keys: Keys, at_ms: int, what: str) -> None:
    """Raise an InputError where the key was no operator's for all tenants at that time (Unix ms); others may not."""
    keyring = keys.keyring()
    credential = credential_of(kid, keyring, keys.registry())
    check_signing_time(keyring.get(kid), at_ms)
    credential.check_time(at_ms)
    if credential.role is not Role.OPERATOR or ANY not in credential.tenants:
        raise NotPermitted(f"only an operator for all tenants may {what}", field="keyid")


def _missing(value: Any) -> Missing | None:
    return None if value is None else Missing(**checked(Missing, value))
