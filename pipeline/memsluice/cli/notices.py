"""``memsluice notices``: tell people by webhook and e-mail what waits for them."""

import signal
import threading
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from memsluice import log
from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home, duration_ms
from memsluice.clock import wall_ms
from memsluice.errors import ConfigError, InvalidArgument, NotSent
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.operations.notices.rounds import RoundResult, Rounds
    from memsluice.operations.notices.settings import NoticeSettings
    from memsluice.telemetry.meters import Meters

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Tell people by webhook and e-mail what waits.")
EVERY_MS_MIN = 1_000
LOCK = "notices.lock"
LINE_CHARS_MAX = 400
Settings = Annotated[
    Path | None,
    typer.Option("--settings", help="Settings file. Default: notices.yaml in the home.", show_default=False),
]


@app.callback()
def _notices() -> None:
    """Tell people by webhook and e-mail what waits."""


@app.command()
def run(
    once: Annotated[bool, typer.Option("--once", help="Look once, send what is due, and end.")] = False,
    every: Annotated[str, typer.Option("--every", help="Time between two looks: 30s, 5m.")] = "30s",
    metrics_port: Annotated[
        int | None, typer.Option(min=0, max=65_535, help="Serve metrics on this port of 127.0.0.1.", show_default=False)
    ] = None,
    settings: Settings = None,
    home: Home = None,
) -> None:
    """Send a notice when a group of held writes grows, one waits too long, or a review is asked for; until SIGTERM.

    Each notice is sent once. What a receiver does not take is tried again, for about eight hours, and said in the log.
    """
    every_ms = duration_ms(every, "--every")
    if every_ms < EVERY_MS_MIN:
        raise InvalidArgument("--every: 1s at least")
    console, stop = Console(highlight=False), threading.Event()
    with _opened(home, _read(settings, home), metrics_port, stop) as rounds:
        if once:
            result = rounds.run()
            _tell(console, result, rounds)
            if result.failed or not result.looked:
                raise typer.Exit(ExitCode.PROBLEM if result.failed else ExitCode.UNAVAILABLE)
            return
        for number in (signal.SIGTERM, signal.SIGINT):
            signal.signal(number, lambda *_: stop.set())
        names = ", ".join(one.name for one in rounds.channels)
        typer.echo(visible(f"notices: every {every}, to {names}", LINE_CHARS_MAX), err=True)
        while not stop.is_set():
            rounds.run()
            stop.wait(every_ms / 1_000)


@app.command("test")
def try_out(settings: Settings = None, home: Home = None) -> None:
    """Send a test notice to everybody that the settings name, now, and say who took it."""
    from memsluice.operations.notices.judging import trial
    from memsluice.operations.notices.sending import channels

    console, now_ms, failed = Console(highlight=False), wall_ms(), False
    for channel in channels(_read(settings, home)):
        try:
            channel.send(trial(now_ms), now_ms)
            told = Text(f"sent: {visible(channel.name, LINE_CHARS_MAX)}", "green")
        except NotSent as error:
            failed = True
            told = Text(f"not sent: {visible(str(error), LINE_CHARS_MAX)}", "red")
        console.print(told, soft_wrap=True)
    if failed:
        raise typer.Exit(ExitCode.PROBLEM)


def _read(settings: Path | None, home: Path | None) -> "NoticeSettings":
    from memsluice.deployment.home import Home as Place
    from memsluice.operations.notices.settings import FILE, load

    return load(Place.at(home).path / FILE if settings is None else settings)


@contextmanager
def _opened(
    home: Path | None, settings: "NoticeSettings", port: int | None, stop: threading.Event
) -> "Iterator[Rounds]":
    from memsluice.deployment.home import Home as Place
    from memsluice.deployment.locked import locked
    from memsluice.operations.held import desk
    from memsluice.operations.notices.journal import Journal
    from memsluice.operations.notices.rounds import Rounds
    from memsluice.operations.notices.sending import channels
    from memsluice.operations.review.index import ReviewIndex
    from memsluice.operations.target import opened
    from memsluice.telemetry.meters import Meters

    def taken(pid: str) -> ConfigError:
        return ConfigError(f"notices of this home are sent by another process ({pid}): each would be sent twice")

    meters, place = Meters(), Place.at(home)
    with ExitStack() as closing:
        told = channels(settings)
        found = closing.enter_context(opened(home, desk.on_kafka, desk.embedded, "quarantine"))
        closing.enter_context(locked(place.path / LOCK, taken))
        index = closing.enter_context(ReviewIndex.open(home))
        journal = Journal(place.path)
        closing.callback(journal.close)
        if port is not None:
            log.structure_libraries()
            closing.enter_context(_metrics(meters, port))
        yield Rounds(settings, index, found, journal, told, meters, wall_ms, stop.is_set)


@contextmanager
def _metrics(meters: "Meters", port: int) -> "Iterator[None]":
    """Serve the metrics of this process on loopback."""
    from prometheus_client import start_http_server

    try:
        server, thread = start_http_server(port, addr="127.0.0.1", registry=meters.collectors)
    except OSError as error:
        raise ConfigError(f"--metrics-port: nothing can listen on 127.0.0.1:{port}: {error.strerror}") from None
    typer.echo(f"metrics: http://127.0.0.1:{server.server_port}/metrics", err=True)
    try:
        yield
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _tell(console: Console, result: "RoundResult", rounds: "Rounds") -> None:
    waiting, _ = rounds.journal.waiting()
    if not result.looked:
        console.print(Text("the broker did not answer, so nothing new was looked for", "red"))
    console.print(f"{result.made} new notices; {sum(result.sent.values())} sent, {waiting} wait")
    for why in result.failed.values():
        console.print(Text(f"not sent: {visible(why, LINE_CHARS_MAX)}", "red"), soft_wrap=True)
