"""A small picture: dots, lines and words, written as SVG or as PNG (ISO/IEC 15948) without a graphics library. Pure."""

import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass
from html import escape
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

SCALE = 2
"""Pixels of a PNG for each unit of length."""
GLYPH = 3
"""Pixels of a PNG for each cell of a letter, which is three cells wide and five high."""
WHITE = "#ffffff"
_SIGNATURE = b"\x89PNG\r\n\x1a\n"
_LETTERS = {
    "A": "25755", "B": "65656", "C": "34443", "D": "65556", "E": "74647", "F": "74644", "G": "34553", "H": "55755",
    "I": "72227", "J": "11152", "K": "55655", "L": "44447", "M": "57755", "N": "65555", "O": "25552", "P": "65644",
    "Q": "25563", "R": "65655", "S": "34216", "T": "72222", "U": "55557", "V": "55552", "W": "55775", "X": "55255",
    "Y": "55222", "Z": "71247", "0": "75557", "1": "26227", "2": "71747", "3": "71717", "4": "55711", "5": "74717",
    "6": "74757", "7": "71111", "8": "75757", "9": "75717", "-": "00700", "_": "00007", ".": "00002", ":": "02020",
    ",": "00024", "+": "02720", "<": "12421", ">": "42124", " ": "00000",
}  # fmt: skip
"""Rows of each letter from the top, three bits each as one octal digit; what has none is drawn as a frame."""
_FRAME = "75557"
Pixels = NDArray[np.uint8]
"""RGB, shape (height, width, 3)."""


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

    points: Sequence[tuple[float, float]]
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
        """Return the picture as a PNG of SCALE pixels a unit. Letters are capitals of three by five cells."""
        pixels: Pixels = np.full((self.height * SCALE, self.width * SCALE, 3), 255, np.uint8)
        for shape in self.shapes:
            across, down = _pixels(shape)
            inside = (across >= 0) & (across < pixels.shape[1]) & (down >= 0) & (down < pixels.shape[0])
            colour = "#000000" if isinstance(shape, Words) else shape.colour
            pixels[down[inside], across[inside]] = tuple(bytes.fromhex(colour[1:]))
        return encoded(pixels, self.title)


def encoded(pixels: Pixels, title: str) -> bytes:
    """Return pixels as a PNG file: eight bits a channel, no filter, the title as its text."""
    tall, wide, _ = pixels.shape
    rows = np.zeros((tall, 1 + wide * 3), np.uint8)
    rows[:, 1:] = pixels.reshape(tall, -1)
    header = struct.pack(">IIBBBBB", wide, tall, 8, 2, 0, 0, 0)
    about = b"Title\0\0\0\0\0" + title.encode("utf-8", "replace")
    parts = ((b"IHDR", header), (b"iTXt", about), (b"IDAT", zlib.compress(rows.tobytes(), 6)), (b"IEND", b""))
    return _SIGNATURE + b"".join(_chunk(kind, data) for kind, data in parts)


def _chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def _as_svg(shape: Shape) -> str:
    if isinstance(shape, Dot):
        return f'<circle cx="{shape.x:.1f}" cy="{shape.y:.1f}" r="{shape.radius}" fill="{shape.colour}"/>'
    if isinstance(shape, Words):
        where = f'x="{shape.x:.1f}" y="{shape.y:.1f}" font-size="{shape.size}"'
        return f"<text {where}>{escape(shape.text)}</text>"
    points = " ".join(f"{x:.1f},{y:.1f}" for x, y in shape.points)
    style = ' stroke-dasharray="3 3"' if shape.dashed else ' stroke-width="1.5"'
    return f'<polyline points="{points}" fill="none" stroke="{shape.colour}"{style}/>'


def _pixels(shape: Shape) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the pixels of a shape, across and down; some may lie outside of the picture."""
    if isinstance(shape, Dot):
        reach = round(shape.radius * SCALE)
        down, across = np.mgrid[-reach : reach + 1, -reach : reach + 1]
        disc = across**2 + down**2 <= reach**2
        return across[disc] + round(shape.x * SCALE), down[disc] + round(shape.y * SCALE)
    found = _of_words(shape) if isinstance(shape, Words) else _of_path(shape)
    return found[:, 0], found[:, 1]


def _of_path(path: Path) -> NDArray[np.int64]:
    ends = np.round(np.array(path.points, np.float64).reshape(-1, 2) * SCALE).astype(np.int64)
    some = [ends[:1]]
    for start, end in pairwise(ends):
        steps = max(int(np.abs(end - start).max()), 1)
        some.append(np.round(start + (end - start) * (np.arange(1, steps + 1) / steps)[:, None]).astype(np.int64))
    line = np.concatenate(some)
    if path.dashed:
        return line[np.arange(len(line)) % 12 < 6]
    return np.concatenate((line, line + np.array((0, 1))))


def _of_words(words: Words) -> NDArray[np.int64]:
    glyph = GLYPH + (words.size > 11)
    cells = [
        (4 * place + column, row)
        for place, letter in enumerate(words.text.upper())
        for row, bits in enumerate(_LETTERS.get(letter, _FRAME))
        for column in range(3)
        if int(bits) >> 2 - column & 1
    ]
    corners = np.array(cells, np.int64).reshape(-1, 2) * glyph
    corners += (round(words.x * SCALE), round(words.y * SCALE) - 5 * glyph)
    down, across = np.mgrid[:glyph, :glyph]
    cell = np.stack((across.ravel(), down.ravel()), axis=1)
    found: NDArray[np.int64] = (corners[:, None, :] + cell[None, :, :]).reshape(-1, 2)
    return found
