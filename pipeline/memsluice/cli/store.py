"""``memsluice store``: compare the vector store with the log of what landed, mend it, build it anew."""

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.table import Table
from rich.text import Text

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Home, Json
from memsluice.cli.terminal import waiting
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.operations.store.examine import Examined

app = typer.Typer(
    no_args_is_help=True,
    add_completion=False,
    help="Compare the vector store with the log of what landed, and mend it.",
)
UNREADABLE = "unreadable"
"""The kind of an entry of which the log's last record does not verify."""
_UNREADABLE = (
    "the log's records of them do not verify. Bring the seal key back to this home; where it was revoked for good, "
    "`memsluice store rebuild --tenant NAME --drop-lost` drops them"
)
Tenant = Annotated[str | None, typer.Option(help="This tenant only. Default: all of them.", show_default=False)]


@app.command()
def verify(tenant: Tenant = None, as_json: Json = False, home: Home = None) -> None:
    """Compare each object with what the log says of it, and change nothing. Exits with code 4 where any differs, else
    with 8 where the store refused a tenant, which is named and passed over.

    Missing, planted and changed objects, and those that were withdrawn and still lie there, are named by their kind.
    Expired ones are counted and are no difference: the sweep of land takes them out.
    """
    found, unverified = _examined(tenant, home, mend=False)
    if as_json:
        print(json.dumps({"found": [one.as_data() for one in found], "unverified": unverified}))
    else:
        _show(found)
        if unverified:
            print(f"{unverified} records of the store log do not verify under this home's keys, and count for nothing")
        unreadable = sum(one.kinds[UNREADABLE] for one in found)
        if sum(one.harmed for one in found) > unreadable:
            print("the store differs from the log; mend it with: memsluice store repair")
        if unreadable:
            print(f"repair leaves {unreadable} entries as they are: {_UNREADABLE}")
        elif not any(one.harmed or one.passed_over for one in found):
            print("the store says what the log says")
    if any(one.harmed for one in found):
        raise typer.Exit(ExitCode.DIFFERENT)
    if any(one.passed_over for one in found):
        raise typer.Exit(ExitCode.INCOMPLETE)


@app.command()
def repair(tenant: Tenant = None, as_json: Json = False, home: Home = None) -> None:
    """Mend what differs: remove what the log does not know, or no longer, and land again what it says lies there.

    Whatever is landed again comes from memory.accepted.v1, and its seal is verified. Exits with code 8 where an
    entry is too old to be there, or the log's record of it does not verify, so that it stays as it is, or where the
    store did not take one, or refused a tenant, which is named and passed over. Workers may run meanwhile.
    """
    found, _ = _examined(tenant, home, mend=True)
    left, refused = sum(one.left.total() for one in found), sum(one.refused for one in found)
    if as_json:
        print(json.dumps({"found": [one.as_data() for one in found]}))
    else:
        _show(found)
        done = f"{sum(one.removed for one in found)} removed, {sum(one.landed for one in found)} landed again"
        unreadable = sum(one.left[UNREADABLE] for one in found)
        print(done)
        if left > unreadable:
            print(f"{left - unreadable} can not be mended: memory.accepted.v1 has no record of them that verifies")
        if unreadable:
            print(f"{unreadable} were left as they are: {_UNREADABLE}")
        if refused:
            print(f"the store did not take {refused} entries: see whether it is read-only, and repair again")
    if left or refused or any(one.passed_over for one in found):
        raise typer.Exit(ExitCode.INCOMPLETE)


@app.command()
def rebuild(
    tenant: Annotated[str, typer.Option(help="The tenant whose part of the store is built anew.")],
    yes: Annotated[bool, typer.Option("--yes", help="Do not ask.")] = False,
    drop_lost: Annotated[
        bool,
        typer.Option("--drop-lost", help="Also drop entries that cannot be landed again."),
    ] = False,
    as_json: Json = False,
    home: Home = None,
) -> None:
    """Drop a tenant's part of the store, and land again what the log says lies there. Asks first.

    Until it has ended, the tenant's questions find less, and are told what is missing. Nothing is dropped where an
    entry is too old to be in memory.accepted.v1, or its record in the log does not verify. Exits with code 8 where
    anything differs afterwards.
    """
    from memsluice.errors import NotFound
    from memsluice.operations.store.examine import examine
    from memsluice.operations.store.examine import rebuild as build
    from memsluice.operations.store.place import open_place

    with open_place(home, writing=True) as place:
        if not yes:
            typer.confirm(
                f"Drop what {visible(place.name, 160)} holds of {visible(tenant, 80)}, and land it again?",
                abort=True,
                err=True,
            )
        with waiting("landing"):
            landed = build(place, tenant, drop_lost=drop_lost)
            try:
                left = list(examine(place, tenant, mend=False))
            except NotFound:  # all of it was dropped, and nobody knows of the tenant any more
                left = []
    harmed = sum(one.harmed for one in left)
    if as_json:
        print(json.dumps({"landed": landed, "found": [one.as_data() for one in left]}))
    else:
        print(f"{landed} objects landed again" + (f"; {harmed} differ from the log" if harmed else ""))
    if harmed:
        raise typer.Exit(ExitCode.INCOMPLETE)


def _examined(tenant: str | None, home: Path | None, *, mend: bool) -> "tuple[list[Examined], int]":
    """Return what was found, and how many records of the log, as far as it was read, do not verify."""
    from memsluice.operations.store.examine import examine
    from memsluice.operations.store.place import open_place

    with open_place(home, writing=mend) as place, waiting("comparing the store with its log"):
        return list(examine(place, tenant, mend=mend)), place.log.unverified


def _show(found: "list[Examined]") -> None:
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for heading in ("tenant", "zone", "objects", "differ"):
        table.add_column(heading, overflow="fold")
    for one in found:
        kinds = ", ".join(f"{many} {kind}" for kind, many in sorted(one.kinds.items())) or "none"
        table.add_row(Text(visible(one.tenant, 80)), one.zone.value, str(one.looked_at), Text(kinds))
    if found:
        Console().print(table)
    for one in found:
        if one.passed_over:
            print(f"{visible(one.tenant, 80)}, {one.zone.value}, was passed over: {visible(one.passed_over, 400)}")
