"""A small picture: dots, lines and words, written as SVG or as PNG. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from html import escape
from io import BytesIO
from itertools import pairwise
from math import hypot
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from PIL.ImageDraw import ImageDraw

SCALE = 2
"""Pixels of a PNG for each unit of length."""
DASH = 3
"""Length of a dash, and of the gap after it."""
WHITE, BLACK = "#ffffff", "#000000"
Point = tuple[float, float]


@dataclass(frozen=True, slots=True)
class Dot:
    """A disc around (x, y)."""

    x: float
    y: float
    colour: str
    radius: float = 2.5


@dataclass(frozen=True, slots=True)
class Path:
    """Straight lines from point to point."""

    points: Sequence[Point]
    colour: str
    dashed: bool = False


@dataclass(frozen=True, slots=True)
class Words:
    """One line of text whose lower left corner is (x, y)."""

    x: float
    y: float
    text: str
    size: int = 11


Shape = Dot | Path | Words


@dataclass(frozen=True, slots=True)
class Picture:
    """Shapes on white, drawn in their order; lengths in units, from the upper left corner. Colours are ``#rrggbb``."""

    width: int
    height: int
    title: str
    shapes: Sequence[Shape]

    def svg(self) -> str:
        """Return the picture as an SVG document."""
        drawn = "".join(map(_as_svg, self.shapes))
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" width="{self.width}" height="{self.height}" '
            f'font-family="sans-serif"><title>{escape(self.title)}</title>'
            f'<rect width="100%" height="100%" fill="{WHITE}"/>{drawn}</svg>\n'
        )

    def png(self) -> bytes:
        """Return the picture as a PNG of SCALE pixels a unit, its title among its text."""
        from PIL import Image
        from PIL.ImageDraw import Draw
        from PIL.PngImagePlugin import PngInfo

        image = Image.new("RGB", (self.width * SCALE, self.height * SCALE), WHITE)
        pen = Draw(image)
        for shape in self.shapes:
            _draw(pen, shape)
        about, kept = PngInfo(), BytesIO()
        about.add_itxt("Title", self.title)
        image.save(kept, "PNG", pnginfo=about)
        return kept.getvalue()


def _as_svg(shape: Shape) -> str:
    if isinstance(shape, Dot):
        return f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius}" fill="{shape.colour}"/>'
    if isinstance(shape, Words):
        where = f'x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size}"'
        return f"<text {where}>{escape(shape.text)}</text>"
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
    style = ' stroke-dasharray="3 3"' if shape.dashed else ' stroke-width="1.5"'
    return f'<polyline points="{points}" fill="none" stroke="{shape.colour}"{style}/>'


def _draw(pen: "ImageDraw", shape: Shape) -> None:
    from PIL.ImageFont import load_default

    if isinstance(shape, Dot):
        pen.circle((shape.x * SCALE, shape.y * SCALE), shape.radius * SCALE, shape.colour)
    elif isinstance(shape, Words):
        font = load_default(shape.size * SCALE)
        pen.text((shape.x * SCALE, shape.y * SCALE), shape.text, BLACK, font, anchor="ls")
    else:
        for line in _dashes(shape.points) if shape.dashed else [shape.points]:
            pen.line([(x * SCALE, y * SCALE) for x, y in line], shape.colour, width=SCALE)


def _dashes(points: Sequence[Point]) -> Iterator[tuple[Point, Point]]:
    """Yield the dashes of a line, which begin anew at each of its points."""
    for (x, y), (to_x, to_y) in pairwise(points):
        length = hypot(to_x - x, to_y - y)
        for at in range(0, int(length) + 1, 2 * DASH):
            ends = (min(share / length, 1) if length else 0 for share in (at, at + DASH))
            first, last = ((x + (to_x - x) * share, y + (to_y - y) * share) for share in ends)
            yield first, last
