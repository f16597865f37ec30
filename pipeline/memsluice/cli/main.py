"""``memsluice``: one command line over all parts.

Sub-commands are imported when they are called, so that ``memsluice demo`` prints within a second, and a part that
cannot be imported breaks its own command alone.
"""

import importlib
import os
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache
from typing import Annotated, Any

import typer
from typer.core import TyperCommand, TyperGroup
from typer.exceptions import TyperException

from memsluice import log
from memsluice.cli import examples, exit_codes
from memsluice.cli.exit_codes import ExitCode
from memsluice.errors import ConfigError, MemsluiceError, MissingExtra
from memsluice.escaping import visible
from memsluice.extras import needed

Part = tuple[str, str]
PARTS: dict[str, Part] = {
    "recall": ("memsluice.cli.recall", "Search a tenant's memory; only verified entries are shown."),
    "certify": ("memsluice.cli.certify", "Which smoothed recall certifies a bound, and what it costs."),
    "trace": (
        "memsluice.cli.entries.trace",
        "Everything about one event id: who, when, which rule decided, where it is.",
    ),
    "lineage": ("memsluice.cli.entries.lineage", "What an entry was made from, and why it is tainted."),
    "blast-radius": ("memsluice.cli.entries.blast_radius", "Everything that was made from an entry or a source."),
    "revoke": ("memsluice.cli.entries.revoke", "Contain or remove an entry, or everything from a source."),
    "promote": ("memsluice.cli.entries.promote", "Share an untainted entry with everybody of its tenant."),
    "declassify": ("memsluice.cli.entries.declassify", "Remove the taint label of one content; two reviewers sign."),
    "renew": ("memsluice.cli.entries.renew", "Extend an entry's time in memory; a reviewer signs."),
    "protect": (
        "memsluice.cli.entries.protect",
        "Protect an entry from being replaced; an operator signs.",
    ),
    "approve": ("memsluice.cli.approve", "Add the other signature to a proposed command."),
    "quarantine": ("memsluice.cli.held.quarantine", "Held writes: list, group, show, release, reject, replay."),
    "review": ("memsluice.cli.review", "Review held writes on a full screen: groups, decided by key."),
    "notices": (
        "memsluice.cli.notices",
        "Tell people by webhook and e-mail: a group grew, a write waits too long, a review is asked for.",
    ),
    "dead-letters": (
        "memsluice.cli.dead_letters.dead_letters",
        "Input that could not be authenticated: list, show, replay, dismiss.",
    ),
    "console": ("memsluice.cli.console", "Held writes and all that an operator looks at, in a browser."),
    "top": ("memsluice.cli.top", "Live view: rates, lag, verdicts, held writes, calibration."),
    "calibration": ("memsluice.cli.calibration", "A tenant's detector calibration over time."),
    "store": (
        "memsluice.cli.store",
        "Compare the vector store with the log of what landed: verify, repair, rebuild.",
    ),
    "partition": (
        "memsluice.cli.partition",
        "Partitions that stand still because of one record: list, try again, accept a loss.",
    ),
    "stack": ("memsluice.cli.stack", "A real Kafka and Weaviate on this machine, without containers."),
    "topics": ("memsluice.cli.topics", "Topics and access rules as code."),
    "keys": ("memsluice.cli.keys", "Credentials of producers, readers and operators, and the gate's keys."),
    "policy": ("memsluice.cli.policy", "Policies: check, compare, evaluate, activate."),
    "rescreen": (
        "memsluice.cli.rescreen",
        "Decide past events again under another policy, without changing anything.",
    ),
    "work": ("memsluice.cli.work", "Run stages of the pipeline as a worker on Kafka."),
    "recall-service": ("memsluice.cli.recall_service", "Answer recalls over HTTP, for agents without a gate key."),
    "ingest-service": ("memsluice.cli.ingest_service", "Take events over HTTP, from programs in any language."),
    "mcp": ("memsluice.cli.mcp", "A memory server for MCP clients, over stdio or HTTP."),
    "doctor": ("memsluice.cli.doctor", "Check everything that a deployment needs, and say what to do."),
}
"""The product's commands: the module of each, which has an ``app``, and its line in ``memsluice --help``."""
os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
"""Looking for plugins of pydantic reads the metadata of every installed package, at every start."""
PLUGINS = "memsluice.commands"
"""Group of entry points by which another distribution attaches commands: each names a mapping like :data:`PARTS`."""


@cache
def parts() -> dict[str, Part]:
    """Return the product's commands and those that other installed distributions attach, by name."""
    from importlib import metadata

    attached: dict[str, Part] = {}
    for point in metadata.entry_points(group=PLUGINS):
        attached |= point.load()
    return attached | PARTS


@contextmanager
def _spelled_out() -> Iterator[None]:
    try:
        yield
    except TyperException as error:
        if isinstance(said := getattr(error, "message", None), str):
            error.message = visible(said)
        raise


def _only_text(command: Any) -> None:
    """Let no word but a path hold bytes that are no UTF-8: nobody's name has them, no event can."""
    for parameter in command.params:
        parameter.callback = _replacing(parameter.callback)
    for inner in getattr(command, "commands", {}).values():
        _only_text(inner)


def _replacing(then: Any) -> Any:
    def replace(ctx: Any, parameter: Any, value: Any) -> Any:
        value = [_utf8(each) for each in value] if isinstance(value, list | tuple) else _utf8(value)
        return value if then is None else then(ctx, parameter, value)

    return replace


def _utf8(value: Any) -> Any:
    return value.encode("utf-8", "replace").decode() if type(value) is str else value


class LazyGroup(TyperGroup):
    """Imports a sub-command's module when it is called, and not to list it."""

    _listing = False

    def list_commands(self, ctx: Any) -> list[str]:
        """Return the names of all commands, attached ones first."""
        return list(parts())

    def get_command(self, ctx: Any, cmd_name: str) -> Any:
        """Return a part's command. Raises ConfigError where the part cannot be imported."""
        found = PARTS.get(cmd_name) or parts().get(cmd_name)
        if found is None:
            return None
        where, told = found
        if self._listing:
            return TyperCommand(cmd_name, help=told)
        try:
            with needed(f"`memsluice {cmd_name}`"):
                module = importlib.import_module(where)
        except MissingExtra:
            raise
        except ImportError as error:
            raise ConfigError(f"`memsluice {cmd_name}` cannot be loaded: {error}") from error
        module.app.rich_markup_mode = None
        command = typer.main.get_command(module.app)
        _only_text(command)
        exit_codes.attach(cmd_name, command)
        examples.attach(cmd_name, command)
        return command

    def make_context(self, *args: Any, **kwargs: Any) -> Any:
        """As typer does; an error repeats nothing of the command line that acts on the terminal."""
        with _spelled_out():
            return super().make_context(*args, **kwargs)

    def invoke(self, ctx: Any) -> Any:
        """As typer does; see :meth:`make_context`."""
        with _spelled_out():
            return super().invoke(ctx)

    def format_help(self, ctx: Any, formatter: Any) -> None:
        """Write the help without importing the parts."""
        self._listing = True
        try:
            super().format_help(ctx, formatter)
        finally:
            self._listing = False


def _version(shown: bool) -> None:
    if shown:
        from importlib import metadata

        typer.echo(f"memsluice {metadata.version('memsluice')}")
        raise typer.Exit(ExitCode.DONE)


_EXITS = f"Exit codes: {exit_codes.listed(ExitCode)}. What each means is in docs/commands.md."

_root = typer.Typer(
    cls=LazyGroup, no_args_is_help=True, rich_markup_mode=None, epilog=_EXITS
)  # fmt: skip


@_root.callback()
def _options(
    version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and end.")
    ] = False,
    debug: Annotated[bool, typer.Option("--debug", help="Show the whole traceback of an error.")] = False,
) -> None:
    """A write gate for the long-term memory of LLM agents.

    Signed, taint-tracked, screened, replayable. Start with: memsluice demo
    """


cli: Any = typer.main.get_command(_root)
"""The click group, for tests and completion; errors of memsluice propagate from it."""


@contextmanager
def _traced() -> Iterator[None]:
    """Export this command's own spans (publications, recalls) where OpenTelemetry's variables name a backend."""
    made = None
    if any(name.startswith("OTEL_EXPORTER_OTLP_") for name in os.environ):
        with needed("The export of spans, for which OTEL_EXPORTER_OTLP_ENDPOINT asks,", "otel"):
            from memsluice.telemetry.tracing import provider

        made = provider("memsluice-cli", str(os.getpid()))
    if made is None:
        yield
        return
    from opentelemetry import trace

    from memsluice.telemetry.exporting import close

    trace.set_tracer_provider(made)
    try:
        yield
    finally:
        close(made)


def app() -> None:
    """Run the command line: an error is one line and an exit code of :mod:`memsluice.cli.exit_codes`."""
    log.configure()
    try:
        with needed("This command"), _traced():
            cli(prog_name="memsluice")
    except (MemsluiceError, OSError) as error:
        if "--debug" in sys.argv:
            raise
        from rich.console import Console

        from memsluice.cli.terminal import complain

        complain(Console(stderr=True), error)
        sys.exit(exit_codes.of_error(error))
    except KeyboardInterrupt:
        sys.exit(ExitCode.INTERRUPTED)


if __name__ == "__main__":
    app()
