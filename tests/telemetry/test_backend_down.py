"""A backend that is down, or takes and never answers, and a scrape that hangs: nothing waits, nothing grows."""

import socket
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from threading import Thread
from time import monotonic
from urllib.request import urlopen

import pytest
from prometheus_client import generate_latest
from tests.patience import HANG_S, until
from tests.telemetry.test_metrics import patient
from tests.telemetry.test_spans import ENDED_NS, STARTED_NS, intake, traceparent

from memsluice.errors import ConfigError
from memsluice.events.records import Output, Record
from memsluice.runtimes.kafka.spec import StageSpec
from memsluice.telemetry import exporting, tracing
from memsluice.telemetry.endpoint import CONNECTIONS_MAX, Endpoint
from memsluice.telemetry.health import Health
from memsluice.telemetry.meters import Meters
from memsluice.telemetry.tracing import StageTracer
from memsluice.telemetry.worker_telemetry import Telemetry
from memsluice.topics.names import EVENTS, SEALED

WAITING_MAX = 600
ROUNDS, BATCH = 50, 100
SPANS = ROUNDS * (BATCH + 1)
HANGING = 5


@contextmanager
def silent_server() -> Iterator[tuple[str, list[socket.socket]]]:
    """Give the address of a server that accepts every connection, reads nothing and never answers."""
    with ExitStack() as closing:
        server = closing.enter_context(socket.create_server(("127.0.0.1", 0), backlog=64))
        taken: list[socket.socket] = []

        def accept() -> None:
            while True:
                try:
                    taken.append(closing.enter_context(server.accept()[0]))
                except OSError:
                    return

        Thread(target=accept, daemon=True).start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}", taken


@pytest.fixture(params=["nobody listens", "never answers"])
def backend_down(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """OpenTelemetry's variables name a backend that takes nothing."""
    with silent_server() as (silent, _):
        endpoint = "http://127.0.0.1:9" if request.param == "nobody listens" else silent
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "600")
        monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", str(WAITING_MAX))
        yield


class _Seal:
    """A stage that gives each record back; the queue of spans is looked at whenever it is called."""

    def process(self, batch: Sequence[Record]) -> list[list[Output]]:
        """Pass each record on."""
        return [[Output(SEALED, record.partition, record.key, record.value)] for record in batch]


def _spec() -> StageSpec:
    return StageSpec(
        name="seal",
        app_id="memsluice-seal",
        user="seal",
        inputs=(EVENTS,),
        outputs=(SEALED,),
        kind="batch",
        stage=_Seal(),
    )


@pytest.mark.timeout(500)  # without the bound, closing waits for the ten minutes that the backend is given
@pytest.mark.usefixtures("backend_down")
def test_a_backend_that_is_down_costs_spans_and_nothing_else() -> None:
    """Every record has its outputs; at most so many spans wait, the others are counted; ending takes a bounded time."""
    telemetry = Telemetry([_spec()], instance="0")
    stage, outputs = telemetry.specs[0].make(), 0
    (spans,) = telemetry._provider._active_span_processor._span_processors  # type: ignore[union-attr]
    assert isinstance(spans, exporting.BoundedSpans)
    for number in range(ROUNDS):
        batch = [intake(number * BATCH + n, traceparent()) for n in range(BATCH)]
        outputs += sum(map(len, stage.process(batch)))  # type: ignore[arg-type]
        assert 0 <= spans.waiting <= WAITING_MAX
    telemetry.catch_up()
    assert outputs == ROUNDS * BATCH
    lost = telemetry.meters.collectors.get_sample_value("memsluice_spans_lost_total", {"why": exporting.QUEUE_FULL})
    in_hand = 512 * 8  # batches of the SDK's size that the one exporting thread may have given up since
    assert lost is not None
    assert SPANS - WAITING_MAX - in_hand <= lost <= SPANS - WAITING_MAX
    telemetry.close()
    ended = telemetry._provider.get_tracer("late").start_span("late")  # type: ignore[union-attr]
    ended.end()  # neither fails nor waits


def test_every_span_is_waiting_handed_over_or_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the counter says is what was lost, to the last span."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_TIMEOUT", "1")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", str(WAITING_MAX))
    lost: Counter[str] = Counter()
    provider = tracing.provider("memsluice", "0", lambda why, spans: lost.update({why: spans}))
    assert provider is not None
    tracer = StageTracer("seal", "memsluice-seal", provider)
    for number in range(20):
        tracer.batch([intake(number * 100 + n, traceparent()) for n in range(100)], [[]] * 100, STARTED_NS, ENDED_NS)
    provider.force_flush()
    assert lost[exporting.QUEUE_FULL] + lost[exporting.NOT_EXPORTED] == 20 * 101
    assert exporting.close(provider, 240_000)


@pytest.mark.parametrize("said", ["lots", "0", "-1"])
def test_a_queue_that_is_no_number_is_said(monkeypatch: pytest.MonkeyPatch, said: str) -> None:
    """A slip in a variable is a sentence at the start, not a queue without a bound."""
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9")
    monkeypatch.setenv("OTEL_BSP_MAX_QUEUE_SIZE", said)
    with pytest.raises(ConfigError, match="OTEL_BSP_MAX_QUEUE_SIZE"):
        tracing.provider("memsluice", "0")


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[Endpoint]:
    """A worker's endpoint."""
    patient(monkeypatch)
    served = Endpoint(Meters(), Health((), monotonic()), now_ms=lambda: 0)
    yield served
    served.close()


def _answers(endpoint: Endpoint, path: str) -> bool:
    try:
        with urlopen(f"http://127.0.0.1:{endpoint.port}{path}", timeout=HANG_S) as answer:
            return bool(answer.status == 200)
    except OSError:
        return False


def test_scrapes_that_hang_stop_neither_health_nor_the_stages(endpoint: Endpoint) -> None:
    """Who connects and says nothing, half a request, or never reads the answer, takes a place and nothing else."""
    with ExitStack() as closing:
        for said in [b"", b"GET /metr", b"GET /metrics HTTP/1.0\r\n\r\n"] * HANGING:
            hanging = closing.enter_context(socket.create_connection(("127.0.0.1", endpoint.port)))
            hanging.sendall(said)
        assert _answers(endpoint, "/livez")
        assert _answers(endpoint, "/metrics")
        endpoint.report([])
        assert generate_latest(endpoint._meters.collectors)


def test_hanging_scrapes_are_bounded_and_their_places_come_back(endpoint: Endpoint) -> None:
    """A thread a connection, and so many connections: more are sent away, until one of those ends."""
    with ExitStack() as closing:
        for _ in range(CONNECTIONS_MAX):
            closing.enter_context(socket.create_connection(("127.0.0.1", endpoint.port)))
        one_more = closing.enter_context(socket.create_connection(("127.0.0.1", endpoint.port)))
        one_more.settimeout(HANG_S)
        assert one_more.recv(1) == b""  # closed at once: nobody waits for a place
    assert until(lambda: _answers(endpoint, "/livez"), "a place is free again")
