"""A flame graph as one SVG file: no script, no font, nothing fetched; a frame under the pointer says what it costs."""

from collections.abc import Iterator
from dataclasses import dataclass, field
from html import escape

from memsluice_lab.profile.stacks import LAYERS, Weighed, layer_of

WIDTH, ROW, CHAR, HEAD = 1_600, 17, 6.6, 60
PIXELS_MIN = 0.4
"""Narrower frames are left out."""
COLOURS = (
    "#e4572e", "#f3a712", "#29a0b1", "#76b041", "#a8c686", "#6c7fd8", "#9d8df1", "#d16ba5", "#c9ada7", "#b8b8aa",
    "#d9d9d9", "#eeeeee",
)  # fmt: skip
_COLOUR = dict(zip(LAYERS, COLOURS, strict=True))


@dataclass(slots=True)
class _Node:
    name: str
    cost: float = 0.0
    inner: dict[str, "_Node"] = field(default_factory=dict)


def svg(title: str, found: Weighed, unit: str = "ms") -> str:
    """Draw stacks: a frame's width is its cost, what it calls lies above it, its colour is its layer."""
    root = _Node("all")
    for frames, cost in found.items():
        root.cost += cost
        node = root
        for frame in frames:
            node = node.inner.setdefault(frame, _Node(frame))
            node.cost += cost
    boxes = list(_boxes(root, (), 0.0, WIDTH / root.cost if root.cost else 0.0))
    height = HEAD + ROW * (1 + max(depth for _, depth, _, _ in boxes))
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="monospace" '
        'font-size="11">',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
        f'<text x="4" y="18" font-size="15">{escape(title)}: {root.cost:.2f} {unit}</text>',
        *_legend(),
    ]
    for node, depth, left, path in boxes:
        width, top = WIDTH * node.cost / root.cost if root.cost else WIDTH, height - ROW * (1 + depth)
        said = f"{node.name}: {node.cost:.3f} {unit}, {node.cost / root.cost if root.cost else 0:.1%}"
        chars = int((width - 4) / CHAR)
        label = node.name if len(node.name) <= chars else f"{node.name[: chars - 1]}…"
        shown = f'<text x="{left + 2:.1f}" y="{top + 12}">{escape(label)}</text>' if chars > 2 else ""
        colour = _COLOUR[layer_of(path)]
        lines.append(
            f'<g><title>{escape(said)}</title><rect x="{left:.1f}" y="{top}" width="{width:.1f}" height="{ROW - 1}" '
            f'fill="{colour}"/>{shown}</g>'
        )
    return "\n".join([*lines, "</svg>", ""])


def _boxes(
    node: _Node, path: tuple[str, ...], left: float, pixels: float
) -> Iterator[tuple[_Node, int, float, tuple[str, ...]]]:
    """Yield every frame that can be seen: its depth, its left edge, and the frames down to it."""
    yield node, len(path), left, path
    for inner in sorted(node.inner.values(), key=lambda one: one.name):
        if inner.cost * pixels >= PIXELS_MIN:
            yield from _boxes(inner, (*path, inner.name), left, pixels)
        left += inner.cost * pixels


def _legend() -> Iterator[str]:
    for number, (layer, colour) in enumerate(_COLOUR.items()):
        left, top = 4 + 265 * (number % 6), 26 + 15 * (number // 6)
        yield f'<rect x="{left}" y="{top}" width="11" height="11" fill="{colour}"/>'
        yield f'<text x="{left + 15}" y="{top + 10}">{escape(layer)}</text>'
