"""The menu: what each page says of itself, as far as whoever looks may see it."""

from dataclasses import dataclass

from memsluice.console.visitors import Sight, Visitor


@dataclass(frozen=True, slots=True)
class Item:
    """A page of the menu, and what one must be allowed to see for it; lower ``place`` stands first."""

    title: str
    path: str
    place: int
    sight: Sight = Sight.METADATA


ITEMS: list[Item] = []
"""What the pages of this server put into the menu; :mod:`memsluice.console.pages` fills it."""


def menu(visitor: Visitor) -> list[Item]:
    """Return the menu of a visitor."""
    return sorted((one for one in ITEMS if visitor.sees(one.sight)), key=lambda one: one.place)
