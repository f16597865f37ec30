"""``memsluice recall``: search a tenant's memory, on the running stack or the embedded log."""

import json
import time
import uuid
from collections.abc import Callable, Iterator
from concurrent.futures import TimeoutError as FutureTimeout
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich import box
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memsluice.cli.options import Home, Json, check_name
from memsluice.clock import wall_ms
from memsluice.errors import ConfigError, InvalidArgument, NotDelivered, NotFound
from memsluice.escaping import visible
from memsluice.events.limits import QUESTION_BYTES_MAX

if TYPE_CHECKING:
    from memsluice.events.models import Recall
    from memsluice.recall.missing import Freshness
    from memsluice.recall.recaller import Recalled
    from memsluice.stores.base import VectorStore

app = typer.Typer(add_completion=False, help="Search a tenant's memory; only verified entries are shown.")
ACKNOWLEDGED_SECONDS = 15.0
NAMES_SHOWN_MAX = 8
_TIER_STYLES = {1: "bold green", 2: "green", 3: "cyan", 4: "yellow", 5: "red"}


@dataclass(frozen=True, slots=True)
class MemoryPlace:
    """Where memory is asked: its store, its freshness index, and how a recall is published there.

    ``permits`` raises for what the reader's credential may not ask; ``publish`` returns where the acknowledged event
    lies, in words.
    """

    name: str
    store: "VectorStore"
    freshness: "Freshness"
    permits: "Callable[[Recall], None]"
    publish: "Callable[[Recall], str]"


@app.command()
def recall(
    tenant: Annotated[str, typer.Argument(help="Tenant whose memory is searched.")],
    question: Annotated[str, typer.Argument(help="What to search for, in plain words.")],
    principal: Annotated[
        str, typer.Option(help="The person on whose behalf: shared entries and their own are seen.")
    ] = "cli",
    session: Annotated[
        str | None, typer.Option(help="The session, whose own entries are seen too. Default: a new one.")
    ] = None,
    agent: Annotated[str, typer.Option(help="The agent that asks.")] = "memsluice-recall",
    namespace: Annotated[str, typer.Option(help="The namespace of the entries.")] = "default",
    tier_max: Annotated[
        int, typer.Option("--tier-max", min=1, max=5, help="Leave out less trusted tiers than this.")
    ] = 5,
    k: Annotated[int, typer.Option("-k", min=1, max=100, help="Entries at most.")] = 5,
    research: Annotated[
        bool, typer.Option("--research", help="Search the external zone: outside content, as data.")
    ] = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Show the entries nearest to a question, each verified. The recall is published as an event first."""
    from memsluice.events.models import Tier, Zone

    _check_words(question, {"--principal": principal, "--agent": agent, "--namespace": namespace})
    console = Console()
    quiet = Console(stderr=True)
    places: list[str] = []
    with quiet.status("opening the memory") as status, open_place(home, tenant) as place:
        status.update("loading the encoder")
        recaller = _recaller(place, home, places)
        status.update("asking")
        begun = time.perf_counter()
        answer = recaller.recall(
            tenant,
            question,
            agent=agent,
            principal=principal,
            session=session or f"cli-{uuid.uuid4().hex[:12]}",
            namespace=namespace,
            k=k,
            zone=Zone.EXTERNAL if research else Zone.GUIDANCE,
            tier_max=Tier(tier_max),
        )
        took_ms = (time.perf_counter() - begun) * 1_000
    if as_json:
        print(json.dumps(as_data(answer, places[-1])))
    else:
        show(console, answer, place.name, places[-1], took_ms, wall_ms())


def _check_words(question: str, names: dict[str, str]) -> None:
    """Raise InvalidArgument, before anything is opened, for what no recall could carry."""
    if not 0 < len(question.encode()) <= QUESTION_BYTES_MAX:
        raise InvalidArgument(
            f"QUESTION: has {len(question.encode())} bytes, and must have 1 to {QUESTION_BYTES_MAX}: write what to "
            "search for"
        )
    for option, name in names.items():
        check_name(name, option)


def _recaller(place: MemoryPlace, home: Path | None, places: list[str]) -> Any:
    from memsluice.encoder import load_encoder
    from memsluice.keystore.store import KeyStore
    from memsluice.recall.recaller import Recaller

    return Recaller(
        store=place.store,
        encoder=load_encoder(),
        keys=KeyStore(home).keyring,
        permits=place.permits,
        publish=lambda event: places.append(place.publish(event)),
        now_ms=wall_ms,
        new_id=lambda: str(uuid.uuid4()),
        freshness=place.freshness,
    )


@contextmanager
def open_place(home: Path | None, tenant: str) -> Iterator[MemoryPlace]:
    """Give the running stack (or the deployment that the environment names), else the home's embedded memory.

    Raises ConfigError, in one sentence, where there is neither, or no credential of a reader for the tenant.
    """
    from memsluice.deployment.home import Home
    from memsluice.operations.target import on_broker

    place = Home.at(home)
    with ExitStack() as closing:
        if on_broker(place, home):
            yield _on_kafka(home, tenant, closing)
        elif place.log_file.exists():
            yield _embedded(home, tenant, closing)
        else:
            raise ConfigError(
                f"There is no memory at {place.path}: start a stack with `memsluice stack up`, or run `memsluice demo`"
            )


def _on_kafka(home: Path | None, tenant: str, closing: ExitStack) -> MemoryPlace:
    from memsluice.client.options import WriterOptions
    from memsluice.client.writer import RecallChannel
    from memsluice.deployment.connection import Connection
    from memsluice.keystore.store import KeyStore
    from memsluice.readers.apart import ApartTopic
    from memsluice.recall.freshness import FreshnessIndex
    from memsluice.stores.opening import open_store
    from memsluice.topics.names import PARTITIONS, STORE, USER_READER, WEAVIATE_RECALL

    connection = Connection.load(home)
    options = WriterOptions(delivery_seconds=ACKNOWLEDGED_SECONDS, linger_ms=0)
    store = open_store(connection, WEAVIATE_RECALL)
    closing.callback(store.close)
    name = f"the stack at {connection.bootstrap}"
    _check_tenant(store, tenant, name)
    channel = closing.enter_context(RecallChannel.open_local(tenant=tenant, home=home, options=options))
    log = ApartTopic(connection, USER_READER, STORE)
    closing.callback(log.close)

    def publish(event: "Recall") -> str:
        try:
            receipt = channel.publish(event).result(ACKNOWLEDGED_SECONDS + 1)
        except FutureTimeout:
            raise NotDelivered("the broker did not acknowledge the recall in time", event_id=event.id) from None
        return f"{receipt.topic}[{receipt.partition}] at offset {receipt.offset}"

    freshness = FreshnessIndex(log, KeyStore(home).keyring, PARTITIONS)
    return MemoryPlace(name, store, freshness, channel.check, publish)


def _embedded(home: Path | None, tenant: str, closing: ExitStack) -> MemoryPlace:
    from memsluice.client.build import build, topic_of
    from memsluice.client.credentials import check
    from memsluice.deployment.home import Home
    from memsluice.envelope.registry import Role
    from memsluice.events.names import EventType
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.store import lost
    from memsluice.runtimes.assembly import Assembly

    assembly = Assembly(Home.at(home), KeyStore(home))
    lost.check(assembly.home)
    log = assembly.local_log()
    closing.callback(log.close)
    store = assembly.local_store()
    closing.callback(store.close)
    name = f"the embedded memory in {assembly.home.path}"
    _check_tenant(store, tenant, name)
    credential = assembly.keys.find_credential(Role.READER, wall_ms(), tenant=tenant)

    def permits(event: "Recall") -> None:
        check(credential, EventType.RECALL, event, wall_ms())

    def publish(event: "Recall") -> str:
        message = build(event, [credential.signer()], source=f"urn:memsluice:reader:{credential.kid}")
        topic = topic_of(event)
        partition, offset = log.append(topic, message.key, message.value, message.headers, append_ms=wall_ms())
        return f"{topic}[{partition}] at offset {offset}"

    return MemoryPlace(name, store, assembly.local_freshness(log), permits, publish)


def _check_tenant(store: "VectorStore", tenant: str, name: str) -> None:
    known = store.tenants()
    if tenant in known:
        return

    others = ", ".join(visible(name, 80) for name in known[:NAMES_SHOWN_MAX]) + (
        " …" if len(known) > NAMES_SHOWN_MAX else ""
    )
    raise NotFound(
        f"There is no tenant {visible(tenant, 80)!r} in {name}; the tenants there are: {others or 'none yet'}"
    )


def as_data(answer: "Recalled", acknowledged: str) -> dict[str, Any]:
    """Return an answer as JSON values."""
    return {
        "event_id": answer.event_id,
        "acknowledged": acknowledged,
        "as_data": answer.as_data,
        "entries": [
            {
                "object_id": entry.admission.object_id,
                "version": entry.admission.version,
                "event_id": entry.admission.event_id,
                "tier": int(entry.admission.tier),
                "taint": entry.admission.taint,
                "agent": entry.admission.agent,
                "principal": entry.admission.principal,
                "visibility": entry.admission.visibility.value,
                "similarity": round(entry.similarity, 4),
                "written_ms": entry.admission.written_ms,
                "expires_ms": entry.admission.expires_ms,
                "flags": list(entry.flags),
                "content": entry.content,
            }
            for entry in answer.entries
        ],
        "withheld": dict(answer.withheld),
        "incomplete": answer.incomplete,
    }


def show(console: Console, answer: "Recalled", where: str, acknowledged: str, took_ms: float, now_ms: int) -> None:
    """Print an answer: the entries, what was withheld and why, and that the recall was published first."""
    from memsluice.recall.show import WITHHELD_WORDS
    from memsluice.recall.withheld import Withheld

    if answer.as_data:
        console.print("[yellow]Research mode: outside content, shown as data. Nothing in it is an instruction.[/]")
    if answer.entries:
        console.print(_table(answer, now_ms))
    else:
        console.print("Nothing to show: this scope has no verified entry.")
    for reason, count in sorted(answer.withheld.items()):
        console.print(f"[yellow]withheld {count}[/]  {reason}: {WITHHELD_WORDS[Withheld(reason)]}", highlight=False)
    if answer.incomplete:
        console.print("[yellow]incomplete[/]  so much was withheld that the search ended at its bound", highlight=False)
    if not answer.withheld:
        console.print("[dim]withheld nothing[/]", highlight=False)
    verified = f"{len(answer.entries)} verified by signature, from {where}, in {took_ms:.0f} ms."
    published = f"The recall was acknowledged by {acknowledged} before anything was shown."
    console.print(Text(visible(f"{verified} {published}"), style="dim"))


def _table(answer: "Recalled", now_ms: int) -> Table:
    from memsluice.recall.show import TIER_WORDS, duration, left

    table = Table(box=box.SIMPLE_HEAD, expand=True)
    table.add_column("tier", no_wrap=True)
    table.add_column("near", justify="right", no_wrap=True)
    table.add_column("age", justify="right", no_wrap=True)
    table.add_column("expires in", justify="right", no_wrap=True)
    table.add_column("event", ratio=1, min_width=18, overflow="fold", style="dim")
    table.add_column("remembered", ratio=3, overflow="fold")  # last: letters from right to left reorder what follows
    for entry in answer.entries:
        admission = entry.admission
        tier = Text(f"{int(admission.tier)} {TIER_WORDS[admission.tier]}", style=_TIER_STYLES[int(admission.tier)])
        table.add_row(
            tier,
            f"{entry.similarity:.2f}",
            duration(now_ms - admission.written_ms),
            left(admission.expires_ms, now_ms),
            Text(visible(admission.event_id)),
            Text(visible(entry.content)),
        )
    return table
