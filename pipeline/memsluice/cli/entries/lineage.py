"""``memsluice lineage``: the ancestors of an entry, from the audit alone."""

import json
from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

import typer
from rich.console import Console
from rich.text import Text

from memsluice.cli.exit_codes import ExitCode
from memsluice.cli.options import Entry, Home, Json, TenantOfEntry
from memsluice.cli.terminal import waiting
from memsluice.clock import wall_ms
from memsluice.errors import NotFound

if TYPE_CHECKING:
    from memsluice.operations.provenance.ancestry import Node
    from memsluice.readers.base import TopicReader

app = typer.Typer(add_completion=False)
LINKS = {
    "entry": "",
    "parent": "declared parent ",
    "recalled": "recalled in its session: ",
    "unopened": "no runtime credential opened its session ",
}


@app.command()
def lineage(
    entry: Entry, tenant: TenantOfEntry = None,
    depth: Annotated[int, typer.Option(min=1, max=32, help="Steps back at most.")] = 8,
    as_json: Json = False, home: Home = None,
) -> None:  # fmt: skip
    """Draw an entry's ancestors: declared parents, what its session recalled or observed, their tiers and taint.

    What is tainted is red. The result is incomplete where ancestors may be older than the events that fit in memory.
    """
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.held.view import name
    from memsluice.operations.provenance.ancestry import index
    from memsluice.operations.trace.opening import audit_topic
    from memsluice.topics.names import PARTITIONS

    keyring = KeyStore(home).keyring()
    with audit_topic(home) as audit:
        with waiting("reading the audit"):
            owner = tenant or _owner(audit, home, entry)
            found = index(audit, keyring, owner, PARTITIONS, entry)
        root = found.tree(entry, depth)
    if found.unverified:
        _say(f"{found.unverified} audit records do not verify under this home's keys and are not shown")
    if root.entry is None:
        _say(f"not found: tenant {name(owner)} has no entry {name(entry)} among {found.read} audit records")
        raise typer.Exit(ExitCode.NOT_FOUND)
    if as_json:
        told = {"left_out": found.left_out, "whole": found.whole(root), "unverified": found.unverified}
        told |= root.as_data(wall_ms())
        print(json.dumps(told))
    else:
        console = Console(highlight=False, soft_wrap=True)
        for line in draw(root, wall_ms()):
            console.print(line)
    if not found.whole(root):
        _say(f"incomplete: {found.left_out} older events of the tenant did not fit in memory; some may be ancestors")
        raise typer.Exit(ExitCode.INCOMPLETE)


def _owner(audit: "TopicReader", home: object, event_id: str) -> str:
    """Return the one tenant that has an entry of this id. Raises NotFound for none or several."""
    from pathlib import Path

    from memsluice.escaping import visible
    from memsluice.keystore.store import KeyStore
    from memsluice.operations.trace.collect import trace
    from memsluice.topics.names import PARTITIONS

    assert home is None or isinstance(home, Path)
    lives = trace(audit, KeyStore(home).keyring(), event_id, None, PARTITIONS).lives
    if len(lives) == 1:
        return lives[0].tenant
    shown = visible(event_id, 160)
    if lives:
        raise NotFound(f"{len(lives)} tenants have an entry {shown}: choose one with --tenant")
    raise NotFound(f"no tenant has an entry {shown} in the audit")


def draw(root: "Node", now_ms: int) -> Iterator[Text]:
    """Yield the tree, a line a node; nothing that a producer chose acts on the terminal."""
    yield _line(root, now_ms)
    yield from _below(root, now_ms, "")


def _below(node: "Node", now_ms: int, before: str) -> Iterator[Text]:
    rest = [Text(f"and {node.more} more", "dim")] if node.more else []
    for number, above in enumerate(node.above, 1):
        last = number == len(node.above) and not rest
        yield Text(before + ("└── " if last else "├── ")).append_text(_line(above, now_ms))
        yield from _below(above, now_ms, before + ("    " if last else "│   "))
    yield from (Text(f"{before}└── ").append_text(one) for one in rest)


def _line(node: "Node", now_ms: int) -> Text:
    from memsluice.escaping import visible

    style = "red" if node.tainted else "green"
    line = Text(LINKS.get(node.link, f"its session observed {visible(node.link, 40)}: "))
    line.append(visible(node.name, 160), "bold " + style)
    if node.entry is not None:
        where = node.entry.standing(now_ms).value
        line.append(f"  {where}, tier {node.entry.placed.tier}, {_label(node)}")
        line.append(f"  {visible(node.entry.channel, 40)} {visible(node.entry.agent, 80)}", "dim")
    elif not node.outside:
        line.append("  not in the audit, so tainted", "red")
    if node.by:
        line.append(f"  by recall {visible(node.by, 160)}", "dim")
    if node.told:
        line.append("  (its ancestors are shown above)", "dim")
    return line


def _label(node: "Node") -> str:
    from memsluice.escaping import visible

    assert node.entry is not None
    if not node.tainted:
        return "not tainted"
    causes = ", ".join(visible(cause, 160) for cause in node.entry.causes[:3]) if node.entry.placed.taint else ""
    looked = f"look back by {visible(node.entry.placed.by, 160)}" if node.entry.looked_back else ""
    why = "revoked" if node.entry.revoked else causes or looked or "an untrusted channel"
    return f"tainted ({why})"


def _say(text: str) -> None:
    Console(stderr=True, soft_wrap=True, highlight=False).print(Text(text, "yellow"))
