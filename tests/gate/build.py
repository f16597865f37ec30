"""Sealed events for tests of the core: small, explicit, with vectors given by hand."""

from datetime import UTC, datetime
from typing import Any

import numpy as np

from memsluice.envelope import codec
from memsluice.envelope.keys import Algorithm, Key, Keyring, Purpose, generate_ed25519
from memsluice.envelope.registry import Role
from memsluice.envelope.seals import Identity, Position, Sealed, payload_digest
from memsluice.envelope.space import DEFAULT_MODEL
from memsluice.events.models import MODELS, Tier
from memsluice.events.names import EventType
from memsluice.events.partition import partition_of
from memsluice.gate.decide import Context, Outcome, decide
from memsluice.gate.decision import TenantState
from memsluice.gate.detectors.memsad.state import MemsadState
from memsluice.gate.detectors.rarity.memory import Memory
from memsluice.gate.detectors.wording.classifier import Classifier, Tail
from memsluice.gate.detectors.wording.tokens import BITS
from memsluice.gate.policy.model import Policy, default
from memsluice.gate.state.kinds import EVENT, EventRow
from memsluice.gate.state.rows import dump, encode_changes
from memsluice.topics.names import EVENTS

T0 = 1_780_000_000_000
TENANT = "acme"
PARTITIONS = 8
PARTITION = partition_of(TENANT, PARTITIONS)
SEED, PUBLIC = generate_ed25519()
RING = Keyring(
    [
        Key("seal-1", Purpose.SEAL, Algorithm.HMAC_SHA256, b"s" * 32),
        Key("digest-1", Purpose.DIGEST, Algorithm.HMAC_SHA256, b"d" * 32),
        Key("admission-1", Purpose.ADMISSION, Algorithm.ED25519, SEED, PUBLIC),
    ]
)
WHO: dict[str, tuple[Role, str, Tier]] = {
    "user": (Role.USER_CHANNEL, "user", Tier.USER_OBSERVED),
    "agent": (Role.PRODUCER, "agent", Tier.USER_OBSERVED),
    "tool": (Role.PRODUCER, "tool", Tier.EXTERNAL_TOOL),
    "web": (Role.PRODUCER, "web", Tier.EXTERNAL_WEB),
    "reader": (Role.READER, "agent", Tier.USER_OBSERVED),
    "runtime": (Role.RUNTIME, "agent", Tier.USER_OBSERVED),
    "operator": (Role.OPERATOR, "operator", Tier.OPERATOR),
    "reviewer": (Role.REVIEWER, "operator", Tier.OPERATOR),
    "reviewer-2": (Role.REVIEWER, "operator", Tier.OPERATOR),
}


EVEN = Tail((0.5, 0.1, 0.01), (-2.0, 0.0, 2.0))
"""Of honest texts one in ten has log-odds of 0 or more."""


def classifier(
    weight: float = 0.0, bias: float = -2.0, mix: tuple[float, float, float, float] = (1.0, 0.0, 0.0, 0.0)
) -> Classifier:
    """A wording classifier whose n-grams all weigh the same; by default it goes by what the head read, if that did."""
    return Classifier(np.full(1 << BITS, weight, np.float32), bias, "even", mix, EVEN, EVEN)


def axis(number: int, towards: int | None = None, cosine: float = 0.0) -> codec.Vector:
    """Return a unit vector along one axis, or one at a given cosine to another axis."""
    vector = np.zeros(codec.DIMENSIONS, dtype=np.float32)
    vector[number] = np.sqrt(1 - cosine**2)
    if towards is not None:
        vector[towards] += cosine
    return vector


class MemoryRows(dict[bytes, bytes]):
    """State rows in a dict, as the runtimes keep them."""

    def scan(self, prefix: bytes, limit: int, after: bytes | None = None) -> Any:
        """Yield rows by key."""
        keys = sorted(k for k in self if k.startswith(prefix) and (after is None or k > after))
        yield from ((key, self[key]) for key in keys[:limit])

    def put(self, key: bytes, value: bytes | None) -> None:
        """Put or delete a row."""
        if value is None:
            self.pop(key, None)
        else:
            self[key] = value


def sealed(who: str, kind: EventType, offset: int, /, *, vector: codec.Vector | None = None, **fields: Any) -> Sealed:
    """Return a sealed event; ``fields`` go into the payload over sensible ones."""
    append_ms = fields.pop("append_ms", T0 + offset * 1000)
    problem = fields.pop("problem", "")
    approvers = fields.pop("approvers", ())
    wording = fields.pop("wording", None)
    model = fields.pop("model", DEFAULT_MODEL)
    base: dict[str, Any] = {
        "id": f"e{offset}",
        "tenant": TENANT,
        "time": datetime.fromtimestamp(append_ms / 1000, UTC).isoformat(),
    }
    if kind is not EventType.COMMAND:
        base |= {"agent": "planner", "principal": "ana", "session": "s1"}
    payload = MODELS[kind].model_validate(base | fields)
    role, channel, tier = WHO[who]
    text = getattr(payload, "content", None) or getattr(payload, "question", None)
    wire = None if vector is None else codec.vector_to_text(vector)
    return Sealed(
        position=Position(EVENTS, PARTITION, offset, append_ms),
        type=kind,
        identity=Identity(f"key-{who}", role, channel, tier),  # type: ignore[arg-type]
        payload=payload,
        payload_digest=payload_digest(RING, payload),
        content_digest="" if text is None else codec.content_digest(RING, TENANT, text),
        vector_text=wire,
        vector_digest="" if vector is None else codec.vector_digest(RING, TENANT, codec.vector_to_bytes(vector)),
        model=model,
        problem=problem,
        approvers=approvers,
        sketch=codec.sketch(RING, TENANT, getattr(payload, "content", None) or ""),
        wording=wording,
    )


class Core:
    """Drives the pure core over rows in memory, one event after another. ``memory`` is the default detector's.

    ``model`` is the wording classifier, None the one that ships.
    """

    def __init__(self, policy: Policy | None = None, *, memory: Memory | None = None) -> None:
        self.policy = policy or default().default
        self.rows = MemoryRows()
        self.memsad = MemsadState.empty(self.policy.memsad)
        self.memory = memory
        self.model: Classifier | None = None
        self.offset = -1
        self.last: Sealed | None = None

    def see(self, who: str, kind: EventType, /, *, carried: Sealed | None = None, **fields: Any) -> Outcome:
        """Decide one event and apply what it changes; the event's own row is kept as *screen* keeps it."""
        self.offset += 1
        event = self.last = sealed(who, kind, self.offset, **fields)
        state = TenantState(self.rows, self.memsad, self.memory, self.model)
        context = Context(event.position.append_ms, self.offset)
        outcome = decide(state, event, self.policy, context, carried)
        for key, value in encode_changes(TENANT, outcome.changes):
            self.rows.put(key, value)
        ends_ms = event.position.append_ms + 7 * 86_400_000 + 300_000
        row = EventRow(topic=EVENTS, offset=self.offset, digest=event.payload_digest, expires_ms=ends_ms)
        assert event.payload is not None
        self.rows.setdefault(EVENT.key(TENANT, event.payload.id), dump(row))
        self.memsad, self.memory = outcome.memsad, outcome.memory
        return outcome

    def write(self, who: str = "user", content: str = "Ana prefers the early train.", **fields: Any) -> Outcome:
        """Decide a write; without a vector it gets one far from every question."""
        fields.setdefault("vector", axis(300 + self.offset % 50))
        return self.see(who, EventType.WRITE, content=content, **fields)

    def recall(self, question: str = "Which train?", **fields: Any) -> Outcome:
        """Decide a recall."""
        fields.setdefault("vector", axis(0))
        return self.see("reader", EventType.RECALL, question=question, **fields)

    def observe(self, origin: str, **fields: Any) -> Outcome:
        """Decide an observation by the runtime."""
        return self.see("runtime", EventType.OBSERVATION, origin=origin, **fields)
