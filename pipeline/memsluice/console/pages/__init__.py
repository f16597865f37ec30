"""The pages, each a file with its ``ROUTES`` and, where it stands in the menu, its ``MENU``."""

from importlib import import_module
from pkgutil import iter_modules

from starlette.routing import BaseRoute

from memsluice.console.menu import ITEMS, Item


def gathered() -> list[BaseRoute]:
    """Return the routes of all pages, and put what they say of themselves into the menu."""
    routes: list[BaseRoute] = []
    items: dict[str, Item] = {}
    for found in sorted(iter_modules(__path__), key=lambda one: one.name):
        module = import_module(f"{__name__}.{found.name}")
        routes += getattr(module, "ROUTES", ())
        items |= {one.path: one for one in getattr(module, "MENU", ())}
    ITEMS[:] = items.values()
    return routes
