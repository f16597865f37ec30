"""A million malformed and hostile inputs: each is read as what it is, or refused in the project's own words."""

import multiprocessing
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from concurrent.futures.process import BrokenProcessPool

from memsluice.encoder import load_encoder
from memsluice_lab.figures.registry import Measured, Setting
from memsluice_lab.hostile import campaign
from memsluice_lab.hostile.campaign import Tally
from memsluice_lab.hostile.judge import CPU_S_MAX, MEMORY_BYTES_MAX, Judgement, Target, bounded

INPUTS = 1_000_000
CHUNK = 5_000
PROCESSES = 2
SHOWN_MAX = 8
_TARGETS: list[Target] = []


def _prepare() -> None:
    _TARGETS.extend(campaign.made(load_encoder(threads=1)))


def _chunk(first: int) -> Tally:
    with bounded():
        return campaign.run(_TARGETS, CHUNK, first=first)


def _tallies() -> Iterator[Tally]:
    """Judge chunk by chunk in processes of their own; one that does not survive its chunk is a failure."""
    context = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(PROCESSES, mp_context=context, initializer=_prepare) as pool:
        chunks = {pool.submit(_chunk, first): first for first in range(0, INPUTS, CHUNK)}
        for done in as_completed(chunks):
            try:
                yield done.result()
            except (BrokenProcessPool, MemoryError) as error:
                lost = Tally()
                lost.counts["(all)", Judgement.FAILED] += CHUNK
                lost.failures.append(("(all)", chunks[done], f"{type(error).__name__}: the process did not survive"))
                yield lost


def hostile_failures(setting: Setting) -> Measured:
    """Inputs, of INPUTS, that raise outside the error tree, take too much, or are not written again as they were."""
    total = Tally()
    for number, tally in enumerate(_tallies(), 1):
        total.add(tally)
        if number % 10 == 0:
            setting.say(f"{sum(total.counts.values()):,} inputs judged, {total.of(Judgement.FAILED)} failures")
    names = sorted({name for name, _ in total.counts})
    rows = tuple((name, _told(total, name)) for name in names)
    worst = campaign.kinds(total.failures).most_common(SHOWN_MAX)
    table = (
        ("inputs", f"{sum(total.counts.values()):,}"),
        ("… read, and written again as they were", f"{total.of(Judgement.WRITTEN):,}"),
        ("… read only, by decoders of what is not written again", f"{total.of(Judgement.READ):,}"),
        ("… refused", f"{total.of(Judgement.REFUSED):,}"),
        ("bounds", f"{CPU_S_MAX:g} s of processor time an input, {MEMORY_BYTES_MAX >> 20} MiB more memory"),
        *rows,
        *((f"failed: {name}", f"{count}: {why}") for (name, why), count in worst),
    )
    return Measured(float(total.of(Judgement.FAILED)), table)


def _told(total: Tally, name: str) -> str:
    counts = {one: total.counts[name, one] for one in Judgement if total.counts[name, one]}
    told = {Judgement.READ: "read only", Judgement.WRITTEN: "read and written again"}
    return f"{sum(counts.values()):,}: " + ", ".join(f"{n:,} {told.get(one, one)}" for one, n in counts.items())
