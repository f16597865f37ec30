"""A home where everybody who may choose a text chose a hostile one, and everything that was told while it ran."""

import io
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path

from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from prometheus_client import generate_latest
from tests.command import logging_to
from tests.held.desk import BAD, Office
from tests.hostile_text.texts import MARK, NAMES, TEXTS

from memsluice.client import requests
from memsluice.client.build import build, topic_of
from memsluice.client.requests import Session
from memsluice.clock import wall_ms
from memsluice.envelope.registry import Role
from memsluice.events.models import AnyPayload, Origin
from memsluice.events.records import Headers
from memsluice.keystore.store import issue_credential
from memsluice.operations.held import desk as desks
from memsluice.operations.review.index import ReviewIndex
from memsluice.operations.review.query import HeldQuery
from memsluice.runtimes.embedded import Embedded
from memsluice.stores.faiss.store import FaissStore
from memsluice.telemetry.exporting import Provider
from memsluice.telemetry.meters import Meters
from memsluice.telemetry.stage_wrappers import ObservedBatch, ObservedStateful, Watch
from memsluice.telemetry.tracing import StageTracer
from memsluice.topics.names import EVENTS

POLICY = "name: town\ndetector: memsad\nwrites_per_day: {user_verified: 5000, user_observed: 5000}\n"
TRACEPARENT = f"00-{0xA:032x}-{0xB:016x}-01"


@dataclass
class Told:
    """What the stages told while they ran."""

    exporter: InMemorySpanExporter = field(default_factory=InMemorySpanExporter)
    meters: Meters = field(default_factory=lambda: Meters(tenants_max=4))
    log: io.StringIO = field(default_factory=io.StringIO)

    def spans(self) -> list[ReadableSpan]:
        """Return the finished spans."""
        return list(self.exporter.get_finished_spans())

    def metrics(self) -> str:
        """Return what a scrape gets."""
        return generate_latest(self.meters.collectors).decode()


class Town(Office):
    """The home. Held are writes ``held-<n>``, landed ``kept-<n>`` and (tainted) ``data-<n>``: ``TEXTS``, by number."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, ("acme",))
        self.told = Told()
        self._groups: dict[str, str] = {}
        odd = NAMES["right to left"]
        issue_credential(self.keys, Role.READER, "agent", ["*"], kid="reader", note=TEXTS["csi"])
        issue_credential(
            self.keys, Role.PRODUCER, "agent", ["acme"], agents=["*", NAMES["markup"]], principals=["*", odd],
            kid="odd", note=TEXTS["title"],
        )  # fmt: skip
        self.home.policy_file.parent.mkdir(exist_ok=True)
        self.home.policy_file.write_text(POLICY)

    def live(self) -> None:
        """Let everybody publish, and the stages run."""
        store = FaissStore(self.home.store_file)
        with logging_to(self.told.log):
            runtime = self._watched(store)
            for payload, source in self._events():
                self._append(runtime, payload, source)
            for number, (key, value, headers) in enumerate(malformed()):
                runtime.append(EVENTS, key, value, headers, append_ms=wall_ms(), partition=number % 8)
            runtime.run_until_idle()
        runtime.close()
        store.close()

    def group(self, number: int) -> str:
        """Return the id of the group of a held write, by its number."""
        if not self._groups:
            with ExitStack() as closing, ReviewIndex.open(self.home.path) as index:
                index.feed(desks.embedded(self.home, closing))
                rows = index.page(HeldQuery.parse("state:any"), tenants=None, limit=1_000).rows
                self._groups = {row.event_id: row.group for row in rows}
        return self._groups[f"held-{number}"]

    def _append(self, runtime: Embedded, payload: AnyPayload, source: str) -> None:
        signer = self.keys.credential(source).signer()
        message = build(payload, [signer], source=f"urn:test:{source}", traceparent=TRACEPARENT)
        runtime.append(topic_of(payload), message.key, message.value, message.headers, append_ms=wall_ms())

    def _watched(self, store: FaissStore) -> Embedded:
        provider = Provider(SimpleSpanProcessor(self.told.exporter))

        def watch(stage: str) -> Watch:
            return Watch(stage, self.told.meters, StageTracer(stage, f"memsluice-{stage}", provider))

        assembly = self.assembly
        return Embedded(
            self.home.log_file,
            seal=ObservedBatch(assembly.seal(self._encoder), watch("seal")),
            screen=ObservedStateful(assembly.screen(), watch("screen")),
            land=ObservedBatch(assembly.land(store), watch("land")),
            now_ms=wall_ms,
        )

    def _events(self) -> Iterator[tuple[AnyPayload, str]]:
        now, odd = datetime.now(UTC), list(NAMES.values())
        plain = Session("acme", "helper", "ana", "s-1")
        for number, text in enumerate(TEXTS.values()):  # before anything is asked: nothing is odd yet
            yield requests.write(f"kept-{number}", now, plain, f"{MARK} {text}"[:8_000], {}), "user"
        for number, text in enumerate(TEXTS.values()):
            chosen = odd[number % len(odd)]
            session = Session("acme", chosen, chosen, chosen)
            options: requests.WriteOptions = {"namespace": chosen, "key": chosen, "origin": chosen}
            content = f"{text[:48]} {BAD} {MARK} {text}"[:8_192]
            yield requests.write(f"held-{number}", now, session, content, options), "user"
            asked = f"{MARK} {text}"[:2_000]
            yield requests.recall(f"asked-{number}", now, session, asked, []), "reader"
            apart = Session("acme", chosen, chosen, f"web {chosen}"[:128])
            yield requests.observation(f"seen-{number}", now, apart, Origin.WEB, None, f"{MARK} {text}"), "runtime"
            tainted: requests.WriteOptions = {**options, "key": None, "parents": [f"held-{number}"]}
            yield requests.write(f"data-{number}", now, apart, f"{MARK} {text}"[:8_000], tainted), "odd"


def malformed(traceparent: str = TRACEPARENT) -> Iterator[tuple[bytes | None, bytes | None, Headers]]:
    """Yield records that nobody can read, hostile text in every place that their sender fills."""
    for text in (*TEXTS.values(), "\ud800"):
        raw = text.encode("utf-8", "surrogatepass")
        name = text.encode("utf-8", "replace").decode()  # no name of a header arrives with a lone surrogate
        good = {"ce_specversion": b"1.0", "ce_id": b"e", "ce_source": b"s", "ce_type": b"memory.write.v1"}
        yield raw, raw, (("traceparent", traceparent.encode()), (name, raw))
        yield b"acme", b"{}", (("traceparent", raw), *good.items(), (f"ce_{name}", raw), ("content-type", raw))
        for attribute in good:
            yield b"acme", b"{}", tuple({**good, attribute: raw}.items())
        for where in ("time", "partitionkey", "payloadsha256", "dataschema"):
            yield b"acme", b"{}", tuple({**good, f"ce_{where}": raw}.items())
        signed = b'{"payload":"e30=","payloadType":"%s","signatures":[{"keyid":"%s","sig":"e30="}]}'
        escaped = text.encode("unicode_escape").replace(b"\\x", b"\\u00").replace(b"\\U000", b"\\u")
        yield b"acme", signed % (raw, raw), tuple(good.items())
        yield b"acme", signed % (b"application/vnd.memory.write.v1+json", escaped), tuple(good.items())
        yield b"acme", raw, (("content-type", b"application/cloudevents+json; charset=" + raw),)
