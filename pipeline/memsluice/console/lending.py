"""Desks that pages borrow beside that of the held writes: each kind is opened when it is first asked for."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

from starlette.requests import Request

from memsluice.console.asking import serving
from memsluice.console.desks import Desks
from memsluice.deployment.home import Home
from memsluice.operations.target import opened

_D = TypeVar("_D")


@contextmanager
def lent(
    request: Request,
    name: str,
    on_kafka: Callable[[Path | None, ExitStack], _D],
    embedded: Callable[[Home, ExitStack], _D],
) -> Iterator[_D]:
    """Give a desk of the kind that has this name, for this request alone. Raises ConfigError, BrokerUnavailable."""
    told = serving(request)
    if name not in told.others:
        told.others.setdefault(name, Desks(lambda: opened(told.named, _lasting(on_kafka), _brief(embedded))))
    desks: Desks[Any] = told.others[name]
    with desks.borrowed() as desk:
        yield desk


def _lasting(opening: Callable[[Path | None, ExitStack], _D]) -> Callable[[Path | None, ExitStack], tuple[_D, bool]]:
    return lambda home, closing: (opening(home, closing), True)


def _brief(opening: Callable[[Home, ExitStack], _D]) -> Callable[[Home, ExitStack], tuple[_D, bool]]:
    """An embedded log is its own thread's: it is opened anew for each request."""
    return lambda place, closing: (opening(place, closing), False)
