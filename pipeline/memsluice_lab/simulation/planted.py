"""Bugs planted on purpose, each in the code that a deployment runs: a judge that misses one is not done.

A bug is a set of patches that hold while a history is played, and no longer when it is judged.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any, Final

from memsluice.gate.state.kinds import CHAIN, ENTRY, POSITION, SESSION
from memsluice_lab.simulation import planted_overflow, planted_runtime, planted_stages

PLANTED: Final[dict[str, Callable[[], Iterator[Any]]]] = {
    "commit before ack": planted_runtime.commit_before_ack,
    "ack out of order": planted_runtime.ack_out_of_order,
    "fence removed": planted_runtime.fence_removed,
    "round robin": planted_runtime.round_robin,
    "restored before the fence": planted_runtime.restore_before_fence,
    "verify skipped": planted_stages.verify_skipped,
    "taint not persisted": lambda: planted_runtime.not_persisted(SESSION.name),
    "revocation not persisted": lambda: planted_runtime.not_persisted(ENTRY.name, planted_runtime.revoked),
    "chain not persisted": lambda: planted_runtime.not_persisted(CHAIN.name),
    "position not persisted": lambda: planted_runtime.not_persisted(POSITION.name),
    "settled before the commit": planted_runtime.settle_before_commit,
    "outputs after the commit": planted_runtime.outputs_after_commit,
    "restored with what was not committed": planted_runtime.restore_uncommitted,
    "restored from a stale offset": planted_runtime.restore_stale,
    "rows kept that were not committed": planted_runtime.overlay_kept,
    "markers not written": planted_stages.markers_not_written,
    "re-delivery not known": planted_stages.redelivery_unknown,
    "id not stable": planted_stages.unstable_id,
    "deduplicated by the wrong key": planted_stages.deduplicated_by_wrong_key,
    "taint forgotten": planted_stages.taint_forgotten,
    "clock runs back": planted_stages.clock_runs_back,
    "entries taken out": planted_stages.live_taken_out,
    "floor dropped": planted_stages.floor_dropped,
    "read back skipped": planted_stages.read_back_skipped,
    "published before written": planted_stages.published_before_written,
    "refused with the one before": planted_stages.refused_with_the_one_before,
    "genuine events refused": planted_stages.genuine_refused,
    "refused observations taint nothing": planted_stages.refused_taints_nothing,
    "recalls taint nothing": planted_stages.recalls_taint_nothing,
    "persons are not bound by taint": planted_stages.persons_not_bound,
    "admissions refused": planted_stages.admission_refused,
    "sweep skips a zone": planted_stages.sweep_skips,
    "position shifted": planted_stages.position_shifted,
    "waiting overtaken": planted_overflow.overtaken,
    "waiting forgotten at a takeover": planted_overflow.forgotten,
    "waiting passed over": planted_overflow.passed_over,
    "waiting named wrongly": planted_overflow.named_wrongly,
    "counted for another tenant": planted_overflow.counted_for_another,
}
"""Bugs by name."""


@contextmanager
def bug(name: str) -> Iterator[None]:
    """Plant a bug for as long as this lasts."""
    with ExitStack() as stack:
        for change in PLANTED[name]():
            stack.enter_context(change)
        yield
