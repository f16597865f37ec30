"""Pictures within a page: their colours are the page's own, light or dark, and what they show is also said in words.

No colour alone says anything: what is beyond the line is a diamond, the rest are discs, and the line is the line.
"""

from collections.abc import Sequence
from itertools import count

from markupsafe import Markup

from memsluice.operations.monitor.calibration_view import DOTS, LINE, MARKS
from memsluice.operations.monitor.picture import Dot, Path, Picture, Shape, Words
from memsluice.operations.rescreen.curve import RocPoint

CLASSES = {DOTS[0]: "write", DOTS[1]: "beyond", LINE: "limit", MARKS: "phase"}
DIAMOND = 4.5
ROC_SIDE, ROC_EDGE = 320, 44
_NUMBERS = count(1)


def drawn(picture: Picture, said: str) -> Markup:
    """Return a picture as SVG within a page, ``said`` being what it shows, for those who do not see it."""
    number = next(_NUMBERS)
    shapes = Markup("").join(_shape(one) for one in picture.shapes)
    return Markup(
        '<svg class="chart" viewBox="0 0 {w} {h}" role="img" aria-labelledby="chart-{n}-title chart-{n}-said">'
        '<title id="chart-{n}-title">{title}</title><desc id="chart-{n}-said">{said}</desc>{shapes}</svg>'
    ).format(w=picture.width, h=picture.height, n=number, title=picture.title, said=said, shapes=shapes)


def roc(curve: Sequence[RocPoint], said: str) -> Markup:
    """Return a receiver operating characteristic as SVG within a page: bad held upwards, good held to the right."""
    side, edge = ROC_SIDE, ROC_EDGE

    def at(good: float, bad: float) -> tuple[float, float]:
        return edge + good * side, edge / 2 + (1 - bad) * side

    foot = edge / 2 + side
    shapes: list[Shape] = [
        Path([at(0, 1), at(0, 0), at(1, 0)], MARKS),
        Path([at(0, 0), at(1, 1)], MARKS, dashed=True),
        Path([at(point.good, point.bad) for point in curve], LINE),
        Words(2, edge / 2 + 8, "100 %"), Words(8, foot, "0 %"), Words(edge + side - 24, foot + 16, "100 %"),
        Words(edge + side / 2 - 30, foot + 16, "good held"), Words(edge + 6, edge / 2 + 12, "bad held"),
    ]  # fmt: skip
    return drawn(Picture(edge + side + 20, side + edge, "Receiver operating characteristic", shapes), said)


def _shape(shape: Shape) -> Markup:
    if isinstance(shape, Words):
        return Markup('<text x="{:.1f}" y="{:.1f}" font-size="{}">{}</text>').format(
            shape.x, shape.y, shape.size, shape.text
        )
    kind = CLASSES.get(shape.colour, "other")
    if isinstance(shape, Dot) and kind == "beyond":
        x, y, size = shape.x, shape.y, DIAMOND
        corners = f"{x:.1f},{y - size:.1f} {x + size:.1f},{y:.1f} {x:.1f},{y + size:.1f} {x - size:.1f},{y:.1f}"
        return Markup('<polygon class="{}" points="{}"/>').format(kind, corners)
    if isinstance(shape, Dot):
        return Markup('<circle class="{}" cx="{:.1f}" cy="{:.1f}" r="{}"/>').format(
            kind, shape.x, shape.y, shape.radius
        )
    assert isinstance(shape, Path)
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
    return Markup('<polyline class="{}{}" points="{}"/>').format(kind, " dashed" if shape.dashed else "", points)
