"""Every metric there is: the endpoint, the docs page, the dashboard and the alerts are made from this list.

Labels have few values by design: stages, topics, partitions and codes of the gate are known sets. ``tenant`` is a label
only where an operator asks for it, and then of a bounded number of tenants; the rest share ``other``.

A counter that an alert asks for exists at 0 from the start, for every label value: Prometheus sees no increase in a
series that is born at 1.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from itertools import product
from typing import Final, Literal

from memsluice.envelope.verdict import Decision
from memsluice.errors import InputError
from memsluice.events.models import Tier, Zone
from memsluice.events.names import EventType
from memsluice.gate.checks.instructions import INSTRUCTION_MARKERS, INSTRUCTION_PATTERNS
from memsluice.recall.signals.seen import SignalKind
from memsluice.recall.withheld import Flag, Withheld
from memsluice.stages.land import REFUSED_REASON, SEAL_REASON
from memsluice.stages.store_sweep import DIFFERENCE_NAMES, REPAIR_NAMES
from memsluice.telemetry import spans

PREFIX: Final = "memsluice_"
SECONDS: Final = (0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)
MARGINS: Final = (-0.5, -0.2, -0.1, -0.05, 0.0, 0.05, 0.1, 0.2, 0.5)
SIZES: Final = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0, 256.0)
OTHER: Final = "other"
REASONS_MAX: Final = 200
"""More than the gate has reason codes."""
UNDECIDED: Final = "undecided"
"""Outcome of a record that *screen* decided nothing about: a repetition, or a dead letter's marker."""
STAGES: Final = ("seal", "screen", "land")


def _input_codes(kind: type[InputError]) -> set[str]:
    return {kind.code}.union(*map(_input_codes, kind.__subclasses__()))


DEAD_LETTER_REASONS: Final = (*sorted({*_input_codes(InputError), SEAL_REASON, REFUSED_REASON}), OTHER)
"""Reason codes of dead letters; one that is none of these counts as ``other``."""


@dataclass(frozen=True, slots=True)
class Metric:
    """One metric. ``name`` is without prefix and, for a counter, without ``_total``.

    ``known`` are label combinations that exist from the start. ``series_max`` is how many one process can make of it,
    tenants apart; at least the known ones.
    """

    name: str
    kind: Literal["counter", "gauge", "histogram"]
    help: str
    labels: tuple[str, ...] = ()
    buckets: tuple[float, ...] = ()
    series_max: int = 1
    known: tuple[tuple[str, ...], ...] = ()

    @property
    def exported(self) -> str:
        """The name under which Prometheus knows it."""
        return f"{PREFIX}{self.name}{'_total' if self.kind == 'counter' else ''}"

    @property
    def lines_max(self) -> int:
        """Series that Prometheus stores of it at most, tenants apart: a histogram's buckets, sum and count each."""
        combinations = max(self.series_max, len(self.known))
        return combinations * (len(self.buckets) + 3 if self.kind == "histogram" else 1)


def _each(*labels: Iterable[str]) -> tuple[tuple[str, ...], ...]:
    return tuple(product(*labels))


REPORTS = ("drift.nudged", "claims.contradicts", "claims.corroborated", "graph.cluster", "graph.hijack", "graph.hub")
"""Findings that are counted where they hold nothing."""
_TIERS = [tier.name for tier in Tier]
_OUTCOMES = (*product(("seal", "land"), spans.OUTCOMES), *product(("screen",), (*Decision, UNDECIDED)))

RECORDS = Metric(
    "records", "counter", "Records processed, by stage and outcome.", ("stage", "outcome"), known=_OUTCOMES
)
STAGE_SECONDS = Metric(
    "stage_seconds",
    "histogram",
    "Time one call of a stage took: a batch, or one record.",
    ("stage",),
    SECONDS,
    known=_each(STAGES),
)
BATCH_RECORDS = Metric(
    "batch_records",
    "histogram",
    "Records that one call of a stage was given; screen is given one at a time.",
    ("stage",),
    SIZES,
    known=_each(("seal", "land")),
)
LATENCY_SECONDS = Metric(
    "latency_seconds",
    "histogram",
    "From a record's append to the end of its processing.",
    ("stage",),
    SECONDS,
    known=_each(STAGES),
)
FAILURES = Metric(
    "failures",
    "counter",
    "Calls of a stage that raised; the worker ends, or the record's partition is parked.",
    ("stage",),
    known=_each(STAGES),
)
DEAD_LETTERS = Metric(
    "dead_letters",
    "counter",
    "Dead letters, by stage and reason code.",
    ("stage", "reason"),
    known=_each(("seal", "land"), DEAD_LETTER_REASONS),
)
VERDICTS = Metric(
    "verdicts",
    "counter",
    "Verdicts, by type of event and decision.",
    ("type", "decision"),
    known=_each(EventType, Decision),
)
REASONS = Metric(
    "verdict_reasons",
    "counter",
    "Reason codes of verdicts: a verdict counts once for each.",
    ("reason",),
    series_max=REASONS_MAX,
)
WRITES = Metric("memory_writes", "counter", "Writes decided, by trust tier.", ("trust",), known=_each(_TIERS))
REPORTED = Metric(
    "memory_writes_reported",
    "counter",
    "Writes in which a rule found something that the policy only reports, by finding.",
    ("finding",),
    known=_each(REPORTS),
)
WRITES_REJECTED = Metric(
    "memory_writes_rejected",
    "counter",
    "Writes that did not land, by reason code: rejected or held.",
    ("reason",),
    series_max=REASONS_MAX,
)
READS = Metric(
    "memory_reads", "counter", "Entries returned to readers, by trust tier.", ("trust_tier",), known=_each(_TIERS)
)
SIGNALS = Metric(
    "memory_poisoning_signals",
    "counter",
    "Instruction patterns found in writes, by pattern.",
    ("pattern",),
    known=_each((*INSTRUCTION_MARKERS, *INSTRUCTION_PATTERNS)),
)
ENTRIES = Metric(
    "memory_entries_admitted",
    "counter",
    "Entries admitted, by tier; what expired or was replaced is not taken off.",
    ("trust",),
    known=_each(_TIERS),
)
LYING = Metric(
    "memory_entries_current",
    "gauge",
    "Entries that lie in memory, by tier and zone: landed, not taken out, replaced or expired. Of the "
    "partitions in which this worker decided something since it started; what expired counts a while longer (7 days in "
    "tier 2, 1 in 3, 6 hours in 4, 10 minutes in 5, at most).",
    ("trust", "zone"),
    known=_each(_TIERS, Zone),
)
HELD = Metric("quarantine_held", "counter", "Writes put into quarantine.")
REFUSED = Metric("quarantine_refused", "counter", "Rejected writes that are kept in quarantine, for a replay.")
SHADOWED = Metric(
    "shadow_landed",
    "counter",
    "Writes that landed in shadow mode, by the decision that would have kept them out.",
    ("decision",),
    known=_each((Decision.QUARANTINE, Decision.REJECT)),
)
MARGIN = Metric(
    "memsad_margin", "histogram", "Score minus threshold of scored writes: how near the line they lie.", (), MARGINS
)
PHASES = Metric(
    "calibration_phase",
    "counter",
    "Scored writes by phase of the calibration of the detector that decides.",
    ("phase",),
    series_max=5,
)
DRIFT = Metric(
    "calibration_drift",
    "gauge",
    "Largest shift, over tenants, of the mean reference score since a whole window before, in standard deviations.",
)


def _requests(name: str, service: str, *statuses: str) -> Metric:
    told = f"Requests to the {service} service, by HTTP status."
    return Metric(name, "counter", told, ("status",), known=_each(statuses), series_max=16)


RECALLS = _requests("recalls", "recall", "200", "400", "401", "403", "429", "500", "503")
INGESTS = _requests("ingests", "ingest", "202", "400", "401", "403", "404", "409", "413", "422", "429", "500", "503")
RECALL_SECONDS = Metric(
    "recall_seconds", "histogram", "From a question to its answer, its event acknowledged.", (), SECONDS
)
RECALL_WITHHELD = Metric(
    "recall_withheld",
    "counter",
    "Entries that a recall found and did not return, by reason; `missing` ones the store did not give.",
    ("reason",),
    known=_each(Withheld),
)
RECALL_FLAGGED = Metric(
    "recall_flagged",
    "counter",
    "Entries of a trusted tier, or of the external zone, that a recall returned although they read like an "
    "instruction, by what says so.",
    ("flag",),
    known=_each(Flag),
)
RECALL_SIGNALS = Metric(
    "recall_signals",
    "counter",
    "What the recalls of this process show over time, by kind: an entry that suddenly answers many principals, rises "
    "or falls in the order of nearness, a principal that sweeps over memory.",
    ("signal",),
    known=_each(SignalKind),
)
RECALL_UNWATCHED = Metric(
    "recall_unwatched", "counter", "Answers that the detectors of sudden changes had no room left to count."
)
HOLDOUT_RESULTS: Final = ("answered", "missed", "failed")
RECALL_HOLDOUT = Metric(
    "recall_holdout",
    "counter",
    "Known-good questions asked, by result: all entries named for it were found, one was missed, or it could not be "
    "asked.",
    ("result",),
    known=_each(HOLDOUT_RESULTS),
)
NOTICES = Metric(
    "notices",
    "counter",
    "Attempts to send a notice to people, by channel and result; what failed is tried again until it is given up.",
    ("channel", "result"),
    known=_each(("webhook", "mail"), ("sent", "failed", "given up")),
)
NOTICES_OLDEST_SECONDS = Metric(
    "notices_oldest_seconds", "gauge", "For how long the oldest notice that nobody has taken waits; 0 for none."
)
LAG = Metric(
    "lag_records", "gauge", "Records in the log that are not committed.", ("stage", "topic", "partition"), series_max=40
)
COMMITTED = Metric(
    "committed_offset", "gauge", "Next offset to commit from.", ("stage", "topic", "partition"), series_max=40
)
PARKED = Metric(
    "partition_parked",
    "gauge",
    "1 for a partition that stands still until a person says how to go on: `memsluice partition status` says why.",
    ("stage", "partition"),
    series_max=24,
)
OVERFLOW_MOVED = Metric(
    "overflow_moved", "counter", "Events that were moved to the overflow: their tenants were over their quota."
)
OVERFLOW_WAITING = Metric(
    "overflow_waiting",
    "gauge",
    "Events that wait in the overflow, of the partitions that this worker has.",
    ("partition",),
    series_max=8,
)
OVERFLOW_OLDEST_SECONDS = Metric(
    "overflow_oldest_seconds",
    "gauge",
    "For how long the event that goes on next, of those that wait in the overflow, has been in the log.",
)
OLDEST_SECONDS = Metric(
    "oldest_unprocessed_seconds",
    "gauge",
    "Age of the oldest record taken in and not committed.",
    ("stage",),
    series_max=3,
)
STARTED = Metric("started_seconds", "gauge", "When the worker started, in seconds since 1970: it changes by a restart.")
UNVERIFIED_READS = Metric(
    "unverified_reads",
    "counter",
    "Entries that readers say they returned and that the gate never admitted. Must stay 0.",
)
SPANS_LOST = Metric(
    "spans_lost",
    "counter",
    "Spans that no backend has: more than could wait for it (queue_full), not taken by it (not_exported), or "
    "not to be said in OTLP (not_encoded: a defect).",
    ("why",),
    known=_each(("queue_full", "not_exported", "not_encoded")),
)
STORE_DIFFERENCES = Metric(
    "store_differences",
    "counter",
    "Objects of the vector store that differ from the log of what landed, as land and its sweep found them, by kind. "
    "Expired ones are no sign of harm.",
    ("kind",),
    known=_each(DIFFERENCE_NAMES),
)
STORE_SWEPT = Metric("store_swept", "counter", "Objects that the sweep has compared with the log.")
STORE_UNSWEPT_SECONDS = Metric(
    "store_unswept_seconds",
    "gauge",
    "For how long the sweep has done nothing; 0 where the worker has nothing to sweep. Between its rounds it waits for "
    "a minute.",
)
STORE_LOG_UNVERIFIED = Metric(
    "store_log_unverified",
    "counter",
    "Records of memory.store.v1 that land read and could not verify. It reads a partition once as a worker.",
)
STORE_REPAIRS = Metric(
    "store_repairs",
    "counter",
    "What the sweep did about differences, by outcome; what could not be repaired has no accepted record any more.",
    ("outcome",),
    known=_each(REPAIR_NAMES),
)
DISK_FREE = Metric("disk_free_bytes", "gauge", "Bytes that may still be written on the disk of the worker's home.")
DISK_FREE_SHARE = Metric(
    "disk_free_share",
    "gauge",
    "The same as a share, 0 to 1. Below 0.03, or 2 GiB, `memsluice doctor` fails; at 0.02 the store refuses writes.",
)
TENANT_VERDICTS = Metric(
    "tenant_verdicts",
    "counter",
    "Verdicts by tenant and decision; only with --tenant-metrics, for that many tenants.",
    ("tenant", "decision"),
)

METRICS: Final = (
    INGESTS,
    RECALLS,
    RECALL_SECONDS,
    RECALL_WITHHELD,
    RECALL_FLAGGED,
    RECALL_SIGNALS,
    RECALL_UNWATCHED,
    RECALL_HOLDOUT,
    NOTICES,
    NOTICES_OLDEST_SECONDS,
    RECORDS,
    STAGE_SECONDS,
    BATCH_RECORDS,
    LATENCY_SECONDS,
    FAILURES,
    DEAD_LETTERS,
    VERDICTS,
    REASONS,
    WRITES,
    REPORTED,
    WRITES_REJECTED,
    READS,
    SIGNALS,
    ENTRIES,
    LYING,
    HELD,
    REFUSED,
    SHADOWED,
    MARGIN,
    PHASES,
    DRIFT,
    LAG,
    COMMITTED,
    PARKED,
    OVERFLOW_MOVED,
    OVERFLOW_WAITING,
    OVERFLOW_OLDEST_SECONDS,
    OLDEST_SECONDS,
    STARTED,
    UNVERIFIED_READS,
    SPANS_LOST,
    STORE_DIFFERENCES,
    STORE_SWEPT,
    STORE_UNSWEPT_SECONDS,
    STORE_LOG_UNVERIFIED,
    STORE_REPAIRS,
    DISK_FREE,
    DISK_FREE_SHARE,
    TENANT_VERDICTS,
)
"""In the order in which the docs show them."""
