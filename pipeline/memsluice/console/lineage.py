"""The lineage of a held write as a drawing: what it was made from stands left of it, joined by lines. Pure.

The same tree stands beside it as a list, for whoever does not see it, and with all that a drawing has no room for.
"""

from collections.abc import Iterator

from markupsafe import Markup, escape

from memsluice.escaping import visible
from memsluice.operations.provenance.ancestry import Node

NODES_MAX = 60
NAME_CHARS_MAX = 20
COLUMN, ROW, RADIUS = 190, 26, 5
LINKS = {"entry": "", "parent": "declared parent", "recalled": "recalled", "unopened": "session that nobody opened"}


def link_of(node: Node) -> str:
    """Return how an ancestor is one, in words."""
    return LINKS.get(node.link, f"observed, {visible(node.link, 40)}")


def depth_of(node: Node) -> int:
    """Return how many steps a tree goes back."""
    return 1 + max((depth_of(above) for above in node.above), default=-1)


def drawn(root: Node) -> Markup:
    """Return the drawing; nothing for an entry without ancestors."""
    if not root.above:
        return Markup("")
    places: list[tuple[Node, int, float, float | None]] = []
    deep = depth_of(root)
    _place(root, 0, deep, [0.0], places)
    tall = max(y for _, _, y, _ in places) + ROW
    lines = Markup("").join(_line(column, y, below, deep) for _, column, y, below in places if below is not None)
    marks = Markup("").join(_mark(node, column, y, deep) for node, column, y, _ in places)
    return Markup(
        '<svg class="lineage" viewBox="0 0 {} {:.0f}" width="{}" aria-hidden="true" focusable="false">{}{}</svg>'
    ).format((deep + 1) * COLUMN, tall + ROW / 2, (deep + 1) * COLUMN, lines, marks)


def _place(
    node: Node, depth: int, deep: int, room: list[float], places: list[tuple[Node, int, float, float | None]]
) -> float:
    """Give a node and its ancestors their places; return how far down it stands. A parent stands amid its own."""
    rows = []
    kept: list[tuple[Node, int, float, float | None]] = []
    for above in node.above:
        if len(places) + len(kept) >= NODES_MAX:
            break
        inner: list[tuple[Node, int, float, float | None]] = []
        rows.append(_place(above, depth + 1, deep, room, inner))
        kept += inner
    if rows:
        y = (rows[0] + rows[-1]) / 2
    else:
        room[0] += ROW
        y = room[0]
    direct = {id(above) for above in node.above}
    places += [(one, at, row, y if id(one) in direct else below) for one, at, row, below in kept]
    places.append((node, depth, y, None))
    return y


def _x(depth: int, deep: int) -> int:
    return (deep - depth) * COLUMN + RADIUS + 2


def _line(depth: int, y: float, below: float, deep: int) -> Markup:
    x, to = _x(depth, deep), _x(depth - 1, deep)
    half = (x + to) / 2
    return Markup('<path class="line" d="M{} {:.1f}C{} {:.1f} {} {:.1f} {} {:.1f}"/>').format(
        x, y, half, y, half, below, to, below
    )


def _mark(node: Node, depth: int, y: float, deep: int) -> Markup:
    kind = "tainted" if node.tainted else "clean"
    more = f" +{node.more}" if node.more else ""
    return Markup(
        '<circle class="{}" cx="{}" cy="{:.1f}" r="{}"/><text x="{}" y="{:.1f}">{}</text>'
    ).format(
        kind, _x(depth, deep), y, RADIUS, _x(depth, deep) + 9, y - 6, escape(visible(node.name, NAME_CHARS_MAX) + more)
    )  # fmt: skip


def told(root: Node, now_ms: int) -> Iterator[tuple[int, str, Node, str]]:
    """Yield the tree as (steps back, how it is an ancestor, the node, what is known of it)."""
    todo = [(0, root)]
    while todo:
        depth, node = todo.pop()
        yield depth, link_of(node), node, _known(node, now_ms)
        todo += [(depth + 1, above) for above in reversed(node.above)]


def _known(node: Node, now_ms: int) -> str:
    parts = []
    if node.entry is not None:
        parts += [node.entry.standing(now_ms).value, f"tier {int(node.entry.placed.tier)}"]
    elif not node.outside:
        parts.append("not in the audit")
    parts.append("tainted" if node.tainted else "not tainted")
    if node.told:
        parts.append("its own ancestors are shown above")
    if node.more:
        parts.append(f"{node.more} further ancestors are not shown")
    return ", ".join(parts)
