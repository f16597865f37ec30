"""Turns the lines of a stream (queries, observations, writes) into signed events.

Used by ``memsluice lab run``, by ``memsluice demo --data`` and by the figures on the real stack. What a stream knows
about its own attacks is dropped while reading, so nothing behind this module can see it.
"""

import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from hashlib import sha256
from pathlib import Path
from typing import Any

import orjson
from pydantic import ValidationError

from memsluice.client.build import Message, build
from memsluice.errors import ConfigError
from memsluice.events.limits import CONTENT_BYTES_MAX, TENANT_CHARS_MAX
from memsluice.events.models import AnyPayload, Observation, Origin, Recall, Write
from memsluice.events.names import EventType
from memsluice_lab.cast import Signers

HIDDEN = frozenset({"label", "attack", "channel", "category"})
LINE_BYTES_MAX = 1_000_000
KINDS = ("query", "observe", "write")
NEEDED = ("seq", "kind", "tenant", "session", "agent", "principal", "source", "text", "time")

Line = Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Published:
    """One event of a stream: who publishes it (a source of :data:`memsluice_lab.cast.SOURCES`), what, and when.

    ``append_ms`` (Unix ms) is the append clock; ``seq`` the stream's line, None for a session's opening.
    """

    source: str
    type: EventType
    payload: AnyPayload
    append_ms: int
    seq: int | None


@dataclass(frozen=True, slots=True)
class Unsendable:
    """A line that no producer could publish: a field breaks its limit. It counts as refused."""

    seq: int
    kind: str
    field: str
    reason: str


@dataclass(frozen=True, slots=True)
class Restamp:
    """Moves a stream to now: for a real broker, which stamps records itself and refuses old events.

    ``run`` is put before event and session ids, so that the same stream can be played again.
    """

    run: str
    now_ms: Callable[[], int]


def streams_in(folder: Path) -> list[Path]:
    """Return the streams of a folder, by name. Raises ConfigError where there are none."""
    found = sorted(folder.glob("*.jsonl"))
    if not found:
        raise ConfigError(f"there is no <stream>.jsonl in {folder}")
    return found


def read_stream(path: Path) -> Iterator[dict[str, Any]]:
    """Yield a stream's lines without the hidden fields. Raises ConfigError naming the line."""
    known = set[int]()
    try:
        with path.open("rb") as file:
            for number, raw in enumerate(file, 1):
                if not raw.strip():
                    continue
                if len(raw) > LINE_BYTES_MAX:
                    raise ConfigError(f"{path}:{number}: line is longer than {LINE_BYTES_MAX} bytes")
                line = _line(raw, f"{path}:{number}")
                if line["seq"] in known:  # two writes of one seq would have one verdict between them
                    raise ConfigError(f"{path}:{number}: seq {line['seq']} stands on a line before")
                known.add(line["seq"])
                yield line
    except OSError as error:
        raise ConfigError(f"{path} cannot be read: {error.strerror}") from None


def _line(raw: bytes, where: str) -> dict[str, Any]:
    try:
        value = orjson.loads(raw)
    except orjson.JSONDecodeError:
        raise ConfigError(f"{where}: no JSON") from None
    if not isinstance(value, dict):
        raise ConfigError(f"{where}: no JSON object")
    missing = [name for name in NEEDED if name not in value]
    if missing:
        raise ConfigError(f"{where}: {', '.join(missing)} missing")
    odd = [name for name in NEEDED[1:] if not isinstance(value[name], str)]
    if odd:  # a null would become the word "None", and be decided as that
        raise ConfigError(f"{where}: {', '.join(odd)}: no text")
    if value["kind"] not in KINDS:
        raise ConfigError(f"{where}: kind is none of {', '.join(KINDS)}")
    parents = value.get("parents") or []
    if not isinstance(parents, list) or not all(type(seq) is int for seq in (value["seq"], *parents)):
        raise ConfigError(f"{where}: seq is no whole number, or parents no list of them")
    return {name: field for name, field in value.items() if name not in HIDDEN}


def tenant_of(text: str) -> str:
    """Return a stream's tenant as a tenant id: lower case, other characters replaced by ``-``."""
    tenant = re.sub(r"[^a-z0-9_-]", "-", text.lower())[:TENANT_CHARS_MAX]
    return tenant if tenant[:1].isalnum() else f"t{tenant}"[:TENANT_CHARS_MAX]


def event_id(tenant: str, seq: int, run: str = "") -> str:
    """Return the event id of a stream's line."""
    return f"{run + '.' if run else ''}{tenant}.{seq:06d}"


def events_of(
    lines: Iterable[Line], *, restamp: Restamp | None = None, run: str = ""
) -> Iterator[Published | Unsendable]:
    """Yield the events of a stream, in order.

    Before a session's first event the platform opens it. A session keeps the agent of its first event: a stream names
    the source's process there, but a session is bound to one agent. ``run`` is put before event and session ids, as
    ``restamp`` does, without moving anything in time.
    """
    run = run if restamp is None else restamp.run
    agents: dict[tuple[str, str], str] = {}
    for line in lines:
        moment = _moment(line) if restamp is None else datetime.fromtimestamp(restamp.now_ms() / 1000, UTC)
        tenant = tenant_of(str(line["tenant"]))
        session = f"{run + '.' if run else ''}{line['session']}"
        agent = agents.get((tenant, session), str(line["agent"]))
        fields: dict[str, Any] = {
            "id": event_id(tenant, line["seq"], run),
            "tenant": tenant,
            "time": moment,
            "session": session,
            "agent": agent,
            "principal": str(line["principal"]),
        }
        try:
            if (tenant, session) not in agents:
                opening = Observation(**{**fields, "id": f"{fields['id']}.open"}, origin=Origin.OPEN)
                yield _published("runtime", EventType.OBSERVATION, opening, None)
                agents[tenant, session] = agent
            yield _event(line, fields, run)
        except ValidationError as error:
            first = error.errors(include_url=False, include_context=False, include_input=False)[0]
            yield Unsendable(line["seq"], line["kind"], ".".join(map(str, first["loc"])), first["msg"])


def ending(lines: Sequence[Line], end_ms: int) -> list[dict[str, Any]]:
    """Return the lines moved in time, all by as much, so that the last one happens at ``end_ms`` (Unix ms)."""
    if not lines:
        return []
    shift = datetime.fromtimestamp(end_ms / 1000, UTC) - max(_moment(line) for line in lines)
    return [{**line, "time": (_moment(line) + shift).isoformat()} for line in lines]


def _moment(line: Line) -> datetime:
    try:
        moment = datetime.fromisoformat(str(line["time"]))
    except ValueError:
        raise ConfigError(f"seq {line['seq']}: time is no RFC 3339 time") from None
    return moment if moment.tzinfo is not None else moment.replace(tzinfo=UTC)


def _event(line: Line, fields: Mapping[str, Any], run: str) -> Published:
    text, kind = str(line["text"]), line["kind"]
    if kind == "query":
        return _published("reader", EventType.RECALL, Recall(**fields, question=text), line["seq"])
    if kind == "observe":
        origin = Origin.WEB if line["source"] == "web" else Origin.TOOL
        data = text.encode("utf-8", "surrogatepass")
        fits = len(data) <= CONTENT_BYTES_MAX  # what was seen taints, however long it is
        observation = Observation(
            **fields, origin=origin, digest=sha256(data).hexdigest(), content=text if fits else None
        )
        return _published("runtime", EventType.OBSERVATION, observation, line["seq"])
    parents = tuple(event_id(fields["tenant"], seq, run) for seq in line.get("parents") or ())
    write = Write(**fields, content=text, parents=parents)
    return _published(str(line["source"]), EventType.WRITE, write, line["seq"])


def _published(source: str, event_type: EventType, payload: AnyPayload, seq: int | None) -> Published:
    return Published(source, event_type, payload, _milliseconds(payload.time), seq)


def _milliseconds(moment: datetime) -> int:
    return (moment - datetime(1970, 1, 1, tzinfo=UTC)) // timedelta(milliseconds=1)


def signed(published: Published, signers: Signers) -> Message:
    """Return (key, value, headers) of an event's Kafka message, signed by its source's credential.

    Raises ConfigError where the source has none, LimitExceeded where the message would be too large.
    """
    payload = published.payload
    signer = signers.get((payload.tenant, published.source))
    if signer is None:
        raise ConfigError(f"no credential for source {published.source!r} of tenant {payload.tenant}")
    return build(payload, [signer], source=f"/{payload.tenant}/{published.source}")
