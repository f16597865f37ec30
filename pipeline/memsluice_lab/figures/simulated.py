"""Histories of the whole pipeline under a seeded scheduler, and whether its judge finds what was planted."""

from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.simulation import campaign
from memsluice_lab.simulation.campaign import ALONE_EVERY, FOUND_WITHIN
from memsluice_lab.simulation.pipeline import EVENTS

HISTORIES = 10_000
SAY_EVERY = 500
SHOWN_MAX = 8
_NOTE = (
    "Real: the stages, their gate, keys, registry and policies, the Kafka runtime's runners, lanes, fence, overflow, "
    "state rows and recovery, the sweep that mends the store. Simulated: broker, network, RocksDB, the vector store, "
    "time, the encoder's vectors, Faust's consumer. Any failing seed is played again by "
    "`python -m memsluice_lab.simulation --seed N`."
)


def simulated_violations(setting: Setting) -> Measured:
    """Return how many of the histories of seeds 0 to HISTORIES - 1 break a promise. Goes on where it was stopped."""
    place = campaign.FOLDER / f"simulated-{campaign.code()}.json"
    total = campaign.resumed(place)
    for tally in campaign.tallies(total.histories, HISTORIES - total.histories):
        total.add(tally)
        campaign.saved(place, total)
        if total.histories % SAY_EVERY == 0:
            setting.say(f"{total.histories:,} histories, {len(total.failing)} broken")
    faults = {name.removeprefix("fault: "): count for name, count in total.told.items() if name.startswith("fault")}
    rows = [
        ("histories", f"{total.histories:,}, of {EVENTS} events each: {_counts(total.kinds)}"),
        ("faults", f"{total.faults:,} drawn, at least {total.fewest_faults} a history: {_counts(faults)}"),
        ("steps of the scheduler", f"{total.steps:,}"),
        ("requests of former owners that the broker refused", f"{total.refused:,}"),
        (
            "decided anew, each tenant alone and from empty state",
            f"{total.anew:,} histories, one in {ALONE_EVERY}",
        ),
    ]
    rows += [(f"history {seed}", what) for seed, what in total.failing[:SHOWN_MAX]]
    return Measured(float(len(total.failing)), tuple(rows), (_NOTE,))


def planted_found(setting: Setting) -> Measured:
    """Return the share of the planted bugs that some history shows, of at most FOUND_WITHIN each."""
    found = campaign.all_found()
    setting.say(f"{sum(how is not None for how in found.values())} of {len(found)} planted bugs found")
    rows = [("planted", f"{len(found)} bugs, each in the code that runs; at most {FOUND_WITHIN} histories each")]
    rows += [
        (name, "not found" if how is None else f"history {how[0]}: {how[1].partition(':')[0]}")
        for name, how in found.items()
    ]
    return Measured(sum(how is not None for how in found.values()) / len(found), tuple(rows))


def _counts(counts: dict[str, int]) -> str:
    return ", ".join(f"{count:,} {name.replace('_', ' ')}" for name, count in sorted(counts.items(), key=_most))


def _most(each: tuple[str, int]) -> tuple[int, str]:
    return -each[1], each[0]
