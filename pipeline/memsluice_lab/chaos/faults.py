"""Everything else that goes wrong under load: the network, the servers, and workers that come and go."""

import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

from memsluice.errors import StackError
from memsluice.topics import names
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.chaos.following import members, wait
from memsluice_lab.chaos.nemesis import KAFKA, WEAVIATE, Nemesis
from memsluice_lab.chaos.playing import Game
from memsluice_lab.chaos.proxy import Proxy, between
from memsluice_lab.chaos.stages import Company, everything, staffed
from memsluice_lab.chaos.zombies import TAKEN_OVER_S_MAX, Scene, of_tree
from memsluice_lab.figures.accounted import unhurried
from memsluice_lab.figures.bed import Worker, bed
from memsluice_lab.figures.registry import Setting

BROKER, STORE = "kafka", ("weaviate", "weaviate-grpc")
HANG_S = 8.0
"""Below every session's time: nobody is thrown out for it."""
STORM_JOINS = 2
RECOVERED_S_MAX = 180
LASTS_S = 10.0
"""How long a fault of the network lasts."""


@dataclass(frozen=True, slots=True)
class Fault:
    """Something that begins, lasts for a while and ends."""

    begin: Callable[[], None]
    end: Callable[[], None]


def network(proxy: Proxy) -> dict[str, Fault]:
    """Return what a network does: slow, gone, torn, and silent; of the broker and of the store."""

    def store(harm: Callable[[str], None]) -> Fault:
        def both() -> None:
            for route in STORE:
                harm(route)

        return Fault(both, proxy.heal)

    def broker(harm: Callable[[str], None]) -> Fault:
        return Fault(lambda: harm(BROKER), proxy.heal)

    return {
        "the store is slow": store(lambda route: proxy.slow(route, 300, 150)),
        "the store is gone": store(proxy.cut),
        "the store's connections are torn": store(proxy.tear),
        "the store says nothing": store(proxy.swallow),
        "the broker is slow": broker(lambda route: proxy.slow(route, 80, 40)),
        "the broker is gone": broker(proxy.cut),
        "the broker's connections are torn": broker(proxy.tear),
        "the broker says nothing": broker(proxy.swallow),
    }


def servers(nemesis: Nemesis) -> dict[str, Fault]:
    """Return what happens to servers and groups."""

    def once(harm: Callable[[], None]) -> Fault:
        return Fault(harm, lambda: None)

    return {
        "the broker dies": once(lambda: nemesis.kill_server(KAFKA)),
        "the store dies": once(lambda: nemesis.kill_server(WEAVIATE)),
        "the broker hangs": once(lambda: nemesis.hang_server(KAFKA, HANG_S)),
        "the store hangs": once(lambda: nemesis.hang_server(WEAVIATE, HANG_S)),
        "workers come and go": once(lambda: nemesis.storm("screen", STORM_JOINS)),
    }


def clocks(scene: Scene) -> dict[str, Fault]:
    """Return a worker of *screen* and one of *land* that join with clocks which step, and are killed."""
    started: list[Worker] = []

    def begin() -> None:
        for stage in ("screen", "land"):
            started.append(scene.nemesis.stepping(stage, scene.environment))
            group = names.GROUPS[stage]
            if not wait(lambda group=group: "stepping" in members(scene.bed, group), TAKEN_OVER_S_MAX):  # type: ignore[misc]
                raise StackError(f"{stage} with a clock that steps was given no partitions")

    def end() -> None:
        scene.kill(*started)
        started.clear()

    return {"clocks step": Fault(begin, end)}


def strike(made: Company, name: str, fault: Fault, seconds: float, found: list[Violation]) -> str:
    """Let a fault last so long under load; after it, all that was said is decided. Returns what it did, in words.

    A worker that ends for it, which it should not, is started again, as whoever runs it does.
    """
    made.before()
    began = time.monotonic()
    fault.begin()
    try:
        made.after()
        time.sleep(max(0.0, seconds - (time.monotonic() - began)))
    finally:
        fault.end()
    lasted_s = time.monotonic() - began
    decided, ended = recovered(made)
    if not decided:
        found.append(Violation("lost", f"{name}: not all decided {RECOVERED_S_MAX} s after it"))
    found += [Violation("ended", f"{name}: {one}") for one in ended]
    after_s = time.monotonic() - began - lasted_s
    return f"{name}: {lasted_s:.0f} s, all decided {after_s:.0f} s after it, {', '.join(ended) or 'nobody ended'}"


def recovered(made: Company) -> tuple[bool, list[str]]:
    """Wait until all that was said is decided; return whether it is, and which workers had to be started again."""
    deadline, ended = time.monotonic() + RECOVERED_S_MAX, made.replace_ended()
    while not everything(made, max(0.0, deadline - time.monotonic())):
        if time.monotonic() > deadline:
            return False, ended
        ended += made.replace_ended()
    return True, ended


def turn(made: Company, numbers: Sequence[int], found: list[Violation]) -> list[str]:
    """Play the faults of these numbers, one after the other."""
    assert made.proxy is not None
    faults = {**network(made.proxy), **servers(made.scene.nemesis), **clocks(made.scene)}
    chosen = list(faults)
    return [strike(made, chosen[number], faults[chosen[number]], LASTS_S, found) for number in numbers]


@contextmanager
def proxied(setting: Setting, run: str, seed: int) -> Iterator[Company]:
    """Yield a stack of its own whose workers reach broker and store through toxiproxy. Raises StackError."""
    with bed(setting, policy=unhurried()) as running:
        nemesis = Nemesis(running)
        proxy = between(running, nemesis)
        try:
            with staffed(running, nemesis, run, seed, {**of_tree(os.environ), **proxy.environment}) as made:
                made.proxy = proxy
                yield made
        finally:
            proxy.close()


FAULTS = 14
"""How many :func:`network`, :func:`servers` and :func:`clocks` name."""
GAME = Game(turn, 1, proxied)
