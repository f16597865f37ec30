"""``memsluice top``: a live view, from the audit topic and the stages' offsets."""

import json
import time
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console, RenderableType
from rich.live import Live
from rich.text import Text

from memsluice.cli.options import Home, Json, duration_ms
from memsluice.cli.terminal import waiting
from memsluice.clock import wall_ms
from memsluice.errors import BrokerUnavailable, ConfigError
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.operations.monitor.pulse import Snapshot
    from memsluice.operations.monitor.sources import Follower
    from memsluice.readers.kafka import KafkaTopic

app = typer.Typer(add_completion=False, help="Live view: rates, lag, verdicts, held writes, calibration.")


@app.command()
def top(
    once: Annotated[
        bool, typer.Option("--once", help="Print one snapshot and end; the default where there is no terminal.")
    ] = False,
    as_json: Json = False,
    since: Annotated[
        str, typer.Option(help="How far back to begin on a broker: 30m, 12h, 7d. Older held writes are not counted.")
    ] = "1d",
    tenants: Annotated[int, typer.Option(min=1, max=1_000, help="Tenants to show; the busiest.")] = 20,
    every: Annotated[float, typer.Option(min=0.5, max=3_600, help="Seconds between two refreshes.")] = 2.0,
    home: Home = None,
) -> None:
    """Show the lag of each stage, what is decided and why, how many writes wait for review, and the busiest tenants.

    The command reads only memory.audit.v1, the stages' committed offsets and memory.partitions.v1, which names the
    partitions that are parked, and verifies each audit record's seal.
    """
    from memsluice.cli.render.pulse import as_data, render
    from memsluice.gate.reasons import words
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.monitor.pulse import Pulse
    from memsluice.operations.monitor.sources import Follower, lags_of, parked_of
    from memsluice.operations.trace.opening import audit_topic
    from memsluice.readers.local import LocalTopic
    from memsluice.topics.names import PARTITIONS

    console, since_ms = Console(highlight=False), wall_ms() - duration_ms(since, "--since")
    with audit_topic(home) as topic, ExitStack() as closing:
        local = isinstance(topic, LocalTopic)
        lags, parked, pulse = lags_of(topic, home), parked_of(topic, home, closing), Pulse(KeyStore(home).keyring)
        with waiting(f"reading the audit of the last {since}"):
            follower = Follower(topic, pulse, PARTITIONS, since_ms)
            follower.catch_up()

        def seen() -> "Snapshot":
            return pulse.snapshot(pulse.latest_ms if local and pulse.latest_ms else wall_ms())

        def picture() -> RenderableType:
            began = "it began" if local else f"{since} ago"
            return render(seen(), lags(), topic.name, began, words, tenants, wall_ms(), parked())

        def reopen() -> None:
            nonlocal lags, parked
            if not local:
                closing.close()
                again = _broker_topic(home)
                closing.callback(again.close)
                follower.goes_on(again)
                lags, parked = lags_of(again, home), parked_of(again, home, closing)

        if as_json:
            print(json.dumps(as_data(seen(), lags(), topic.name, tenants, parked())))
        elif once or not console.is_terminal:
            console.print(picture())
        else:
            _watch(console, follower, picture, every, reopen)


def _broker_topic(home: Path | None) -> "KafkaTopic":
    """Return the audit topic over a new connection, to where the broker is now: a stack may come back elsewhere."""
    from memsluice.deployment.connection import Connection
    from memsluice.readers.kafka import KafkaTopic

    return KafkaTopic.of(Connection.load(home))


def _watch(
    console: Console,
    follower: "Follower",
    picture: Callable[[], RenderableType],
    every_s: float,
    reopen: Callable[[], None] = lambda: None,
) -> None:
    """Draw again and again until interrupted. A broker that is away is said, and asked again over a new connection.

    A client that has lost its broker keeps what it knew of it, and what it heard then, for minutes.
    """
    try:
        with Live(console=console, screen=True, auto_refresh=False) as live:
            lost = False
            while True:
                try:
                    if lost:
                        reopen()
                    follower.catch_up()
                    live.update(picture(), refresh=True)
                    lost = False
                except (BrokerUnavailable, ConfigError) as error:
                    lost = True
                    live.update(
                        Text(f"{visible(str(error))}\ntrying again every {every_s:g} s", style="red"), refresh=True
                    )
                time.sleep(every_s)
    except KeyboardInterrupt:
        return
