"""Where a command works: on a broker, or on the home's embedded log."""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import TypeVar

from memsluice.deployment.home import Home
from memsluice.deployment.paths import deployment_named
from memsluice.errors import ConfigError

_D = TypeVar("_D")


def on_broker(place: Home, home: Path | None) -> bool:
    """Whether commands go to a broker: the home's stack runs, or the environment names a deployment.

    ``home`` is what the command line named; a home that is named is meant, whatever the environment says.
    """
    return _stack_runs(place) or (home is None and deployment_named())


def _stack_runs(place: Home) -> bool:
    if not place.layout.run_file.exists():  # without it nothing runs, and nobody waits for the import
        return False
    from memsluice.devstack.control import is_running

    return is_running(place.layout)


@contextmanager
def opened(
    home: Path | None,
    on_kafka: Callable[[Path | None, ExitStack], _D],
    embedded: Callable[[Home, ExitStack], _D],
    what: str = "memory",
) -> Iterator[_D]:
    """Give what ``on_kafka`` opens on the broker, else what ``embedded`` opens on the home's log; close it afterwards.

    Raises ConfigError, in one sentence, where there is neither.
    """
    place = Home.at(home)
    with ExitStack() as closing:
        if on_broker(place, home):
            yield on_kafka(home, closing)
        elif place.log_file.exists():
            yield embedded(place, closing)
        else:
            raise ConfigError(
                f"There is no {what} at {place.path}: start a stack with `memsluice stack up`, or run `memsluice demo`"
            )
