"""Valid inputs of every kind, made by the gate itself: what is then damaged. The encoder is the real one."""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

import orjson

from memsluice.client.build import Message, build, topic_of
from memsluice.encoder import Encoder
from memsluice.envelope.keys import Keyring, Purpose
from memsluice.envelope.records import (
    Accepted,
    StoreRecord,
    landing_from_bytes,
    stored_to_bytes,
    withdrawal_to_bytes,
)
from memsluice.envelope.registry import Registry
from memsluice.events.models import Action, AnyPayload, Command, Observation, Origin, Recall, Returned, Tier, Write
from memsluice.events.partition import partition_of
from memsluice.events.records import Output, Record
from memsluice.gate.policy import model as policies
from memsluice.keystore import files
from memsluice.keystore.files import SigningCredential
from memsluice.stages.screen import ScreenStage
from memsluice.stages.seal import SealStage
from memsluice.topics.names import ACCEPTED, AUDIT, COMMANDS, PARTITIONS, QUARANTINE, SEALED
from memsluice.topics.spec import default_directory
from memsluice_lab import cast
from memsluice_lab.model.production import DictRows

TENANT, OTHER = "acme", "globex"
PARTITION = partition_of(TENANT, PARTITIONS)
NOW_MS = 1_780_000_000_000
ONE_A_DAY = {"writes_per_day": {"user_observed": 1}}
"""What is laid over the policy that ships, so that the second write of an agent is held."""


@dataclass(frozen=True, slots=True)
class Sent:
    """One valid message of the intake: its payload, who signed it, and where it lies."""

    payload: AnyPayload
    source: str
    message: Message
    topic: str


@dataclass(frozen=True, slots=True)
class Specimens:
    """Everything that is valid, of one tenant; records between stages as their values."""

    keyring: Keyring
    registry: Registry
    signers: cast.Signers
    stage: SealStage
    sent: tuple[Sent, ...]
    sealed: tuple[bytes, ...]
    accepted: tuple[bytes, ...]
    landed: tuple[Accepted, ...]
    withdrawals: tuple[bytes, ...]
    stored: tuple[bytes, ...]
    audit: tuple[bytes, ...]
    held: tuple[bytes, ...]

    @property
    def kid(self) -> str:
        """The key that seals."""
        return self.keyring.signing(Purpose.SEAL, NOW_MS).kid

    def record(self, message: Message, topic: str, *, partition: int = PARTITION, offset: int = 7) -> Record:
        """Return the intake record of a message."""
        return Record(topic, partition, offset, *message, timestamp_ms=NOW_MS)


def _payloads() -> list[tuple[str, AnyPayload]]:
    moment = datetime.fromtimestamp(NOW_MS / 1_000, UTC)
    person: dict[str, Any] = {
        "tenant": TENANT,
        "time": moment,
        "agent": "planner",
        "principal": "ana",
        "session": "s-1",
    }
    returned = Returned(object_id="0" * 36, version=3, event_id="w-1", tier=Tier.USER_OBSERVED, taint=False)
    command: dict[str, Any] = {"tenant": TENANT, "time": moment, "expires_at": moment.replace(year=moment.year + 1)}
    return [
        ("runtime", Observation(**person, id="o-0", origin=Origin.OPEN)),
        ("agent", Write(**person, id="w-1", content="Ana takes the early train on Mondays.", key="train")),
        ("agent", Write(**person, id="w-2", content="Ana prefers an aisle seat.", parents=("w-1",), origin="chat")),
        ("user", Write(**person, id="w-3", content="I live in Basel.", claimed_tier=Tier.USER_OBSERVED)),
        ("reader", Recall(**person, id="r-1", question="Which train does Ana take?", returned=(returned,))),
        ("runtime", Observation(**person, id="o-1", origin=Origin.WEB, content="A page about trains.")),
        ("web", Write(**person, id="w-4", content="The line is closed in May.")),
        ("agent", Command(**command, id="c-1", action=Action.APPEAL, target="w-2", reason="please", held="{}")),
        ("reviewer", Command(**command, id="c-2", action=Action.REJECT, target="w-2", digest="0" * 64)),
        ("reviewer", Command(**command, id="c-3", action=Action.REPLAY, target="w-2", parameters={"dry": "yes"})),
        ("operator", Command(**command, id="c-4", action=Action.ACTIVATE, target="policy", policy='{"name":"x"}')),
    ]  # fmt: skip


def collect(encoder: Encoder) -> Specimens:
    """Send one event of each kind through the real *seal* and *screen*, and keep everything that they wrote."""
    keyring, registry, signers = cast.in_memory([TENANT, OTHER], seed="hostile")
    sent = []
    for number, (source, payload) in enumerate(_payloads()):
        message = build(payload, [signers[TENANT, source]], source="urn:hostile", structured=number % 3 == 2)
        sent.append(Sent(payload, source, message, topic_of(payload)))
    policy = policies.laid_over(policies.default().default, ONE_A_DAY)
    stage = SealStage(lambda: keyring, lambda: registry, encoder, PARTITIONS, lambda: NOW_MS)
    screen = ScreenStage(lambda: keyring, lambda _tenant: policy, PARTITIONS, lambda: NOW_MS)
    rows, out = DictRows(), dict[str, list[bytes]]()
    nexts = dict.fromkeys((one.topic for one in sent), 0)
    for place, one in enumerate(sent):
        record = Record(one.topic, PARTITION, nexts[one.topic], *one.message, timestamp_ms=NOW_MS)
        nexts[one.topic] += 1
        (outputs,) = stage.process([record])
        sealed = outputs[-1]
        _keep(out, outputs)
        step = screen.process(Record(SEALED, PARTITION, place, sealed.key, sealed.value, sealed.headers, NOW_MS), rows)
        rows.change((change.key, change.value) for change in step.changes)
        _keep(out, step.outputs)
    landed = [landing_from_bytes(keyring, TENANT, value) for value in out[ACCEPTED]]
    entries = tuple(one for one in landed if isinstance(one, Accepted))
    kid = keyring.signing(Purpose.SEAL, NOW_MS).kid
    return Specimens(
        keyring, registry, signers, stage, tuple(sent), tuple(out[SEALED]), tuple(out[ACCEPTED]), entries,
        tuple(withdrawal_to_bytes(keyring, kid, _store_record(one, withdrawn=True)) for one in entries),
        tuple(stored_to_bytes(keyring, kid, _store_record(one)) for one in entries),
        tuple(out[AUDIT]), tuple(out[QUARANTINE]),
    )  # fmt: skip


def _keep(out: dict[str, list[bytes]], outputs: Sequence[Output]) -> None:
    for output in outputs:
        out.setdefault(output.topic, []).append(output.value or b"")


def _store_record(entry: Accepted, *, withdrawn: bool = False) -> StoreRecord:
    one = entry.admission
    return StoreRecord(
        one.object_id, one.tenant, one.version, one.zone, one.event_id, one.content_digest, one.expires_ms, withdrawn
    )


def texts_of_files(specimens: Specimens) -> dict[str, bytes]:
    """Return the valid files that a home or a deployment has, by kind."""
    credential = SigningCredential.model_validate(
        {
            "kid": "acme.agent", "role": "producer", "channel": "agent", "algorithm": "hmac-sha256",
            "secret": b"k" * 32, "tenants": [TENANT],
        }
    )  # fmt: skip
    connection: dict[str, Any] = {
        "bootstrap": "127.0.0.1:9092",
        "users": {"seal": "secret"},
        "weaviate_http_port": 8080,
        "weaviate_grpc_port": 50051,
        "weaviate_keys": {"land": "secret"},
    }
    topic = default_directory() / f"{COMMANDS}.yaml"
    return {
        "keyring": files.keyring_to_bytes(specimens.keyring),
        "registry": files.registry_to_bytes(specimens.registry.all()[:4]),
        "credential": files.credential_to_bytes(credential),
        "connection": orjson.dumps(connection),
        "topic": topic.read_bytes(),
        "policy": POLICY,
    }


POLICY = b"""name: acme
profile: tiered
content_bytes_max: 8192
writes_per_day:
  user_observed: 50
  external_web: null
sensitive:
  action: hold
quarantine: {age_days: 14, per_principal_max: 100}
tenants:
  globex:
    profile: strict
    ttl_seconds: {external_web: 86400}
"""
