"""Keeps the registry's metrics: what the stages' results mean in numbers. Safe for several threads."""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, disable_created_metrics

from memsluice.clock import Clock, wall_ms
from memsluice.envelope.verdict import Decision, Score, Verdict
from memsluice.events.models import Tier
from memsluice.events.names import EventType
from memsluice.events.records import Output, Record
from memsluice.events.span_names import ERROR_TYPE
from memsluice.gate.checks.sessions import RETURNED
from memsluice.runtimes.kafka.progress import StageProgress
from memsluice.stages.store_sweep import REPAIR_NAMES, SWEPT, UNVERIFIED
from memsluice.telemetry import registry, spans
from memsluice.telemetry.drift import DriftGauge
from memsluice.telemetry.entry_counts import Lying
from memsluice.telemetry.registry import Metric
from memsluice.topics.names import OVERFLOW

disable_created_metrics()  # type: ignore[no-untyped-call]  # a second series beside each counter and histogram that says when this process made it


class Meters:
    """One process's metrics. ``tenants_max`` is how many tenants get a label of their own; 0 keeps tenants out.

    ``lying`` follows how many entries lie in memory, by the clock ``now_ms`` (Unix ms).
    """

    def __init__(self, tenants_max: int = 0, now_ms: Clock = wall_ms) -> None:
        self.collectors = CollectorRegistry(auto_describe=True)
        self._metrics = {metric.name: _make(metric, self.collectors) for metric in registry.METRICS}
        self._series: dict[tuple[str, ...], Any] = {}
        """By name and labels what the library looks up by a lock and several conversions, a dozen times an event."""
        self._tenants_max = tenants_max
        self._tenants: set[str] = set()
        self._partitions: set[tuple[str, str, str]] = set()
        self._parked: set[tuple[str, str]] = set()
        self._waiting: set[str] = set()
        self._drift = DriftGauge()
        self._metrics[registry.DRIFT.name].set_function(self._drift.largest)
        self.lying = Lying(now_ms)
        for trust, zone in registry.LYING.known:
            counted = partial(self.lying.count, Tier[trust], zone)
            self._metrics[registry.LYING.name].labels(trust, zone).set_function(counted)

    def add(self, metric: Metric, *labels: str, amount: float = 1) -> None:
        """Count up a counter."""
        self._of(metric, labels).inc(amount)

    def observe(self, metric: Metric, value: float, *labels: str) -> None:
        """Add an observation to a histogram."""
        self._of(metric, labels).observe(value)

    def set(self, metric: Metric, value: float, *labels: str) -> None:
        """Set a gauge."""
        self._of(metric, labels).set(value)

    def partitions(self, stages: Sequence[StageProgress]) -> None:
        """Set lag and commit of every partition that is assigned now, and which are parked; forget all others.

        What stays is never absent in between: a scrape may come at any moment.
        """
        here = set()
        for stage in stages:
            self._overflow(stage)
            for row in stage.partitions:
                labels = (stage.stage, row.topic, str(row.partition))
                here.add(labels)
                if row.lag is not None:
                    self.set(registry.LAG, row.lag, *labels)
                if row.committed is not None:
                    self.set(registry.COMMITTED, row.committed, *labels)
        for labels in self._partitions - here:
            for metric in (registry.LAG, registry.COMMITTED):
                self._metrics[metric.name].remove(*labels)
                self._series.pop((metric.name, *labels), None)
        self._partitions = here
        parked = {(stage.stage, str(state.partition)) for stage in stages for state in stage.parked}
        for name in parked - self._parked:
            self.set(registry.PARKED, 1, *name)
        for name in self._parked - parked:
            self._metrics[registry.PARKED.name].remove(*name)
            self._series.pop((registry.PARKED.name, *name), None)
        self._parked = parked

    def _overflow(self, stage: StageProgress) -> None:
        if stage.waiting is None:
            return
        now = {str(number): count for number, count in stage.waiting}
        for number in self._waiting - now.keys():
            self._metrics[registry.OVERFLOW_WAITING.name].remove(number)
            self._series.pop((registry.OVERFLOW_WAITING.name, number), None)
        for number, count in now.items():
            self.set(registry.OVERFLOW_WAITING, count, number)
        self._waiting = set(now)

    def stage_call(self, stage: str, records: Sequence[Record], started_ns: int, ended_ns: int) -> None:
        """Count a call of a stage, its duration, and each record's latency since its append (Unix ns)."""
        self.observe(registry.STAGE_SECONDS, (ended_ns - started_ns) / 1e9, stage)
        latency = self._of(registry.LATENCY_SECONDS, (stage,))
        for record in records:
            if record.topic == OVERFLOW:  # it was to wait
                continue
            latency.observe(max(0.0, ended_ns / 1e9 - record.timestamp_ms / 1e3))

    def outputs(self, stage: str, results: Sequence[Sequence[Output]]) -> None:
        """Count what a batch stage made of its records."""
        self.observe(registry.BATCH_RECORDS, len(results), stage)
        for outputs in results:
            outcome = spans.outcome(outputs)
            self.add(registry.RECORDS, stage, outcome)
            if outcome == spans.DEAD:
                reason = str(spans.of_outputs(outputs)[ERROR_TYPE])
                known = reason in registry.DEAD_LETTER_REASONS
                self.add(registry.DEAD_LETTERS, stage, reason if known else registry.OTHER)

    def verdict(self, stage: str, verdict: Verdict | None) -> None:
        """Count a verdict by everything that is asked of it; None: nothing was decided, the record being a
        repetition or a dead letter's marker."""
        self.add(registry.RECORDS, stage, registry.UNDECIDED if verdict is None else verdict.decision)
        if verdict is None:
            return
        self.add(registry.VERDICTS, verdict.type, verdict.decision)
        for reason in verdict.reasons:
            self.add(registry.REASONS, reason)
        if self._tenants_max:
            self.add(registry.TENANT_VERDICTS, self._tenant(verdict.tenant), verdict.decision)
        if verdict.type == EventType.WRITE:
            self._write(verdict)
        for finding in verdict.findings:
            if finding.code == RETURNED:
                self._read(finding.detail)

    def of_store(self, name: str, amount: int) -> None:
        """Count what *land* tells of the store and its log: a kind of difference, an outcome of a repair, objects
        swept, or records that do not verify."""
        if name == SWEPT:
            self.add(registry.STORE_SWEPT, amount=amount)
        elif name == UNVERIFIED:
            self.add(registry.STORE_LOG_UNVERIFIED, amount=amount)
        else:
            metric = registry.STORE_REPAIRS if name in REPAIR_NAMES else registry.STORE_DIFFERENCES
            self.add(metric, name, amount=amount)

    def unswept(self, ask: Callable[[], float]) -> None:
        """Ask from now on for how long nothing was swept, whenever that is read."""
        self._metrics[registry.STORE_UNSWEPT_SECONDS.name].set_function(ask)

    def _read(self, detail: Mapping[str, Any]) -> None:
        for tier, count in detail["tiers"].items():
            self.add(registry.READS, tier, amount=count)
        self.add(registry.UNVERIFIED_READS, amount=detail["unknown"])

    def _write(self, verdict: Verdict) -> None:
        trust = verdict.tier.name
        self.add(registry.WRITES, trust)
        landed, decision = verdict.object_id is not None, verdict.decision
        if landed:
            self.add(registry.ENTRIES, trust)
        if decision in (Decision.QUARANTINE, Decision.REJECT):
            if landed:
                self.add(registry.SHADOWED, decision)
            for reason in () if landed else verdict.reasons:
                self.add(registry.WRITES_REJECTED, reason)
        if decision == Decision.QUARANTINE and not landed:
            self.add(registry.HELD)
        if decision == Decision.REJECT and not landed and verdict.held_until_ms is not None:
            self.add(registry.REFUSED)
        for finding in verdict.findings:
            if finding.decision == Decision.ACCEPT and finding.code in registry.REPORTS:
                self.add(registry.REPORTED, finding.code)
            for pattern in finding.detail.get("patterns", ()):
                self.add(registry.SIGNALS, pattern)
        score, usual = verdict.score, verdict.usual
        if told := usual or score:
            self.add(registry.PHASES, told.phase)
        if score:
            self._score(verdict.tenant, score)

    def _score(self, tenant: str, score: Score) -> None:
        if score.score is not None and score.threshold is not None:
            self.observe(registry.MARGIN, score.score - score.threshold)
        self._drift.see(tenant, score)

    def _tenant(self, tenant: str) -> str:
        if tenant not in self._tenants and len(self._tenants) >= self._tenants_max:
            return registry.OTHER
        self._tenants.add(tenant)
        return tenant

    def _of(self, metric: Metric, labels: tuple[str, ...]) -> Any:
        found = self._series.get((metric.name, *labels))
        if found is None:
            found = self._metrics[metric.name]
            found = found.labels(*labels) if labels else found
            self._series[(metric.name, *labels)] = found
        return found


def _make(metric: Metric, collectors: CollectorRegistry) -> Any:
    kinds: dict[str, Any] = {
        "counter": Counter,
        "gauge": Gauge,
        "histogram": partial(Histogram, buckets=metric.buckets),
    }
    name = f"{registry.PREFIX}{metric.name}"
    made = kinds[metric.kind](name, metric.help, metric.labels, registry=collectors)
    for labels in metric.known:
        made.labels(*labels)
    return made
