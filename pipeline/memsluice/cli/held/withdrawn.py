"""What ``memsluice quarantine`` says of entries that had landed, and that look back withdrew."""

import json
from pathlib import Path
from typing import TYPE_CHECKING

from rich.console import Console
from rich.text import Text

from memsluice.cli.held.desk import open_desk
from memsluice.clock import wall_ms
from memsluice.escaping import visible

if TYPE_CHECKING:
    from memsluice.operations.held.desk import HeldDesk
    from memsluice.operations.provenance.withdrawn import Taken

STYLES = {"withdrawn": "yellow", "released": "green", "revoked": "red"}
HOW = "memsluice quarantine release --withdrawn ENTRY"


def look_back(desk: "HeldDesk", tenant: str | None, since: str | None) -> "Taken":
    """Read the audit for what look back took out. Raises InvalidArgument, BrokerUnavailable."""
    from memsluice.operations.held.filters import moment_ms
    from memsluice.operations.provenance.withdrawn import look
    from memsluice.topics.names import PARTITIONS

    since_ms = None if since is None else moment_ms(since, wall_ms())
    return look(desk.audit, desk.keys.keyring(), tenant, since_ms, PARTITIONS)


def tell_withdrawn(console: Console, taken: "Taken", since: str | None) -> None:
    """Say how many are out, and how one sees them; nothing where none are."""
    if taken.waiting:
        entries = "entry" if taken.waiting == 1 else "entries"
        told = f"look back withdrew {taken.waiting} {entries} that had landed" + (f" (since {since})" if since else "")
        console.print(Text(f"{visible(told)}: memsluice quarantine list --withdrawn", "yellow"), soft_wrap=True)


def list_withdrawn(tenant: str | None, since: str | None, limit: int, home: Path | None, *, as_json: bool) -> None:
    """Print what look back took out, oldest first: since when, by whose recall, by which numbers."""
    from memsluice.cli.render.held import indented
    from memsluice.operations.held.view import name
    from memsluice.recall.show import duration

    with open_desk(home) as desk:
        taken = look_back(desk, tenant, since)
    if as_json:
        more = {"found": len(taken.entries), "left_out": taken.left_out, "unverified": taken.unverified}
        print(json.dumps({"entries": [one.as_data() for one in taken.entries[:limit]], **more}))
        return
    console = Console(highlight=False)
    for one in taken.entries[:limit]:
        line = Text.assemble((name(one.event_id), "bold"), f"  {name(one.tenant)}  ", (one.state, STYLES[one.state]))
        console.print(line.append(f", withdrawn {duration(wall_ms() - one.at_ms)} ago"))
        told = ", ".join(f"{part} {value}" for part, value in one.evidence.items())
        console.print(indented(f"by recall {name(one.recall)} of {name(one.principal)}"))
        console.print(indented(name(told), "dim"))
    rest = len(taken.entries) - limit
    console.print(
        Text(f"{taken.waiting} of {len(taken.entries)} are still withdrawn; to return one to memory: {HOW}", "dim"),
        soft_wrap=True,
    )
    if rest > 0 or taken.left_out:
        console.print(
            Text(
                f"{max(rest, 0) + taken.left_out} more are not shown: use --tenant or --since, or raise --limit",
                "yellow",
            ),
            soft_wrap=True,
        )
    if taken.unverified:
        console.print(Text(f"{taken.unverified} records do not verify under this home's keys and are not shown", "red"))
