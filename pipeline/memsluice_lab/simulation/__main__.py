"""``python -m memsluice_lab.simulation``: play histories, one again, or the planted bugs."""

import argparse
import sys
import time
from pathlib import Path
from typing import Final

from memsluice_lab.simulation import campaign
from memsluice_lab.simulation.campaign import Tally
from memsluice_lab.simulation.pipeline import Options

SOAKED: Final = 1_000_000
HISTORIES: Final = 100
SAVED_EVERY_S: Final = 10.0


def main(arguments: list[str] | None = None) -> int:
    """Do what was asked; return 1 where anything was broken, or a planted bug not found."""
    parser = argparse.ArgumentParser(prog="python -m memsluice_lab.simulation", description=__doc__)
    parser.add_argument("--seed", type=int, help="play one history, and print its trace")
    parser.add_argument("--shrink", action="store_true", help="with --seed: leave out faults that are not needed")
    parser.add_argument("--histories", type=int, help=f"how many to play (default: {HISTORIES})")
    parser.add_argument("--first", type=int, default=0, help="the first seed (default: %(default)s)")
    parser.add_argument("--jobs", type=int, default=campaign.JOBS, help="processes (default: %(default)s)")
    parser.add_argument("--planted", nargs="?", const="all", help="look for planted bugs: all, or one by name")
    parser.add_argument(
        "--soak", action="store_true", help=f"go on from where the last soak of this code ended, to {SOAKED:,}"
    )
    asked = parser.parse_args(arguments)
    campaign.quiet()
    if asked.seed is not None:
        return _one(asked.seed, shrink=asked.shrink)
    if asked.planted is not None:
        return _planted(asked.planted, asked.jobs)
    if asked.soak:
        chosen = SOAKED if asked.histories is None else asked.histories
        return _many(0, chosen, asked.jobs, campaign.FOLDER / f"soak-{campaign.code()}.json")
    return _many(asked.first, HISTORIES if asked.histories is None else asked.histories, asked.jobs, None)


def _one(seed: int, *, shrink: bool) -> int:
    history, broken = campaign.shrunk(seed) if shrink else campaign.examined(seed, Options(trace=True))
    print("\n".join(history.told.trace))
    print(f"history {seed}: {history.published} events, faults: {', '.join(history.plan.fired)}")
    print(f"digest {history.told.digest.hexdigest()}")
    for what in broken:
        print(f"BROKEN {what}")
    return int(bool(broken))


def _planted(name: str, jobs: int) -> int:
    found = campaign.all_found(jobs) if name == "all" else {name: campaign.found(name)}
    for planted, how in found.items():
        print(f"{planted}: {'NOT FOUND' if how is None else f'history {how[0]}: {how[1]}'}")
    print(f"{sum(how is not None for how in found.values())} of {len(found)} found")
    return int(None in found.values())


def _many(first: int, histories: int, jobs: int, place: Path | None) -> int:
    total = campaign.resumed(place) if place is not None else Tally()
    begun, started, saved = total.histories, time.monotonic(), 0.0
    if begun:
        print(f"going on behind {begun:,} histories of the same code, {len(total.failing)} broken", flush=True)
    _tell(total)
    for tally in campaign.tallies(first + begun, histories - begun, jobs):
        total.add(tally)
        now = time.monotonic()
        _tell(tally)
        if now - saved > SAVED_EVERY_S or total.histories == histories:
            saved = now
            if place is not None:
                campaign.saved(place, total)
            rate = (total.histories - begun) / (now - started)
            print(
                f"{total.histories:,} of {histories:,} histories, {total.events:,} events, {total.faults:,} faults, "
                f"{len(total.failing)} broken, {rate:.1f} histories a second",
                flush=True,
            )
    return int(bool(total.failing))


def _tell(tally: Tally) -> None:
    for seed, what in tally.failing:
        print(f"BROKEN history {seed}: {what}\n  again: python -m memsluice_lab.simulation --seed {seed}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
