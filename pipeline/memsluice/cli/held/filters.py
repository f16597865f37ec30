"""``memsluice quarantine filters``: queries that are kept under a name."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.held import completing
from memsluice.cli.options import Home, Json
from memsluice.clock import wall_ms
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.operations.review.saved import SavedFilters

app = typer.Typer(no_args_is_help=True, add_completion=False, help="Filters that are kept under a name.")
SHOWN_CHARS_MAX = 2_000
Name = Annotated[str, typer.Argument(help="Name of the filter.", autocompletion=completing.filter_name)]


def _saved(home: Path | None) -> "SavedFilters":
    from memsluice.deployment.home import Home
    from memsluice.operations.review.saved import SavedFilters

    return SavedFilters(Home.at(home).path)


@app.command("list")
def list_(as_json: Json = False, home: Home = None) -> None:
    """List the filters that this home keeps, and what each asks for."""
    found = {name: query.text() for name, query in _saved(home).all(tenants=None).items()}
    if as_json:
        print(json.dumps({"filters": found}))
        return
    console = Console(highlight=False)
    for name, text in found.items():
        told = Text.assemble((visible(name, SHOWN_CHARS_MAX), "bold"), "  ", visible(text, SHOWN_CHARS_MAX) or WAITING)
        console.print(told, soft_wrap=True)
    console.print(Text(f"{len(found)} filters", style="dim"))


WAITING = "(everything that waits)"


@app.command()
def save(
    name: Name,
    query: Annotated[
        str, typer.Argument(help="What it asks for: 'reason:detect tenant:acme since:2h'.",
                            autocompletion=completing.query),
    ],
    home: Home = None,
) -> None:  # fmt: skip
    """Keep a query under a name, in the place of the one that had it; `--filter NAME` then asks for it."""
    from memsluice.operations.review.query import HeldQuery

    wanted = HeldQuery.parse(query, wall_ms())
    _saved(home).save(name, wanted, tenants=None)
    told = f"{visible(name, SHOWN_CHARS_MAX)} asks for: {visible(wanted.text(), SHOWN_CHARS_MAX) or WAITING}"
    Console(highlight=False).print(Text(told), soft_wrap=True)


@app.command()
def delete(name: Name, home: Home = None) -> None:
    """Forget a filter."""
    _saved(home).delete(name, tenants=None)
    Console(highlight=False).print(Text(f"forgot the filter {visible(name, SHOWN_CHARS_MAX)}"), soft_wrap=True)
