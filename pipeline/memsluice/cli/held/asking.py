"""Which held writes a command line asks for, as one query, and the index that answers it."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.held import completing
from memsluice.cli.terminal import waiting
from memsluice.clock import wall_ms
from memsluice.errors import InvalidArgument
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.operations.held.desk import HeldDesk
    from memsluice.operations.review.index import ReviewIndex
    from memsluice.operations.review.query import HeldQuery

HeldTenant = Annotated[
    str | None,
    typer.Option("--tenant", help="Only of this tenant.", autocompletion=completing.tenant, show_default=False),
]
HeldReason = Annotated[
    str | None,
    typer.Option(
        "--reason",
        help="Only with this reason code, or with any code of a module, such as rates.",
        autocompletion=completing.reason,
        show_default=False,
    ),
]
State = Annotated[
    str | None,
    typer.Option(
        help="Only in this state, or in one of several with commas between; the default is pending.",
        autocompletion=completing.state,
        show_default=False,
    ),
]
Everything = Annotated[bool, typer.Option("--all", help="Also those that were decided, or lapsed.")]
Query = Annotated[
    str | None,
    typer.Option(
        help="Only what this asks for: 'reason:detect tenant:acme since:2h'; its fields are in docs/operate.md.",
        autocompletion=completing.query,
        show_default=False,
    ),
]
FilterName = Annotated[
    str | None,
    typer.Option(
        "--filter",
        help="Only what the filter of this name asks for (`filters list`).",
        autocompletion=completing.filter_name,
        show_default=False,
    ),
]
After = Annotated[
    str | None, typer.Option(help="The next page: the place that the page before named.", show_default=False)
]
Newest = Annotated[int, typer.Option("--limit", min=1, max=10_000, help="Rows at most; the newest are shown.")]


def saved_query(home: Path | None, tenant: str | None, text: str | None, filter_name: str | None) -> "HeldQuery":
    """Return what a query and a saved filter together ask for, of one tenant or of all.

    Raises InvalidArgument, NotFound where no such filter is kept, ConfigError.
    """
    from memsluice.deployment.home import Home
    from memsluice.operations.review.query import HeldQuery
    from memsluice.operations.review.saved import SavedFilters

    asked = HeldQuery(tenant=tenant)
    if text is not None:
        asked = asked.also(HeldQuery.parse(text, wall_ms()))
    if filter_name is not None:
        asked = asked.also(SavedFilters(Home.at(home).path).get(filter_name, tenants=None))
    return asked


def narrowed(
    asked: "HeldQuery", reason: str | None, since: str | None, until: str | None, source: str | None,
    min_score: float | None, state: str | None, *, everything: bool, refused: bool = False,
) -> "HeldQuery":  # fmt: skip
    """Return a query narrowed by the options of `list` and `groups`. Raises InvalidArgument."""
    from memsluice.operations.held.filters import moment_ms
    from memsluice.operations.review.query import HeldQuery

    if (state is not None) + everything + refused > 1:
        raise InvalidArgument("--state, --all and --refused exclude each other: give one")
    for moment in (since, until):
        if moment is not None:
            moment_ms(moment, wall_ms())
    named = "refused" if refused else "any" if everything else state
    found = asked.also(
        HeldQuery(reason=reason, since=since, until=until, source=source, score_min=min_score)
    )  # fmt: skip
    return found if named is None else found.also(HeldQuery.parse(f"state:{json.dumps(named)}"))


@contextmanager
def fed_index(desk: "HeldDesk", home: Path | None) -> Iterator["ReviewIndex"]:
    """Give the home's index after it took in what the topics hold now. Raises BrokerUnavailable, ConfigError."""
    from memsluice.operations.review.index import ReviewIndex

    with ReviewIndex.open(home, clock=wall_ms) as index:
        with waiting("reading what is new in the quarantine and the audit"):
            index.feed(desk)
        yield index


def say(console: Console, told: list[tuple[str, str]]) -> None:
    """Print lines, each with its style; whatever they quote acts on nothing."""
    for text, style in told:
        console.print(Text(visible(text), style=style), soft_wrap=True)
