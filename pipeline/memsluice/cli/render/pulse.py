"""The stream as it runs, as a person reads it in a terminal, and as JSON values. Pure."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from rich.console import Console, ConsoleOptions, Group, RenderableType, RenderResult
from rich.table import Table
from rich.text import Text

from memsluice.envelope.partition_orders import PartitionState
from memsluice.envelope.verdict import Decision
from memsluice.escaping import visible
from memsluice.operations.monitor.lag import Lag
from memsluice.operations.monitor.pulse import RECENT_S, Snapshot, Tenant
from memsluice.operations.partitions.words import parked_places
from memsluice.operations.trace.telling import NAME_CHARS_MAX, Words
from memsluice.recall.show import duration, moment

REASONS_SHOWN = 6
NAMES_SHOWN = 3
DRIFT_SHOWN = 1.0
"""Least drift worth a line, in standard deviations; the alert begins at 3."""
LABELS = {
    Decision.ACCEPT: "to guidance",
    Decision.CONTAIN: "as data",
    Decision.QUARANTINE: "held",
    Decision.REJECT: "refused",
    Decision.DUPLICATE: "duplicate",
    Decision.RECORD: "recorded",
}
OWN = {
    Decision.ACCEPT: "guidance",
    Decision.CONTAIN: "data",
    Decision.QUARANTINE: "held",
    Decision.REJECT: "refused",
}
"""Decisions that have a column in the table of tenants; it fits on 80 characters."""
TENANT_CHARS_MAX = 40
TENANT_LINES_LEAST = 3
"""Lines of the table of tenants, its heading among them, that verdicts and reasons leave room for."""
MORE = "more on a higher screen, or by --once"


def render(
    seen: Snapshot,
    lags: Sequence[Lag],
    where: str,
    since: str,
    words: Words,
    tenants_max: int,
    clock_ms: int,
    parked: Sequence[PartitionState] = (),
) -> RenderableType:
    """Return one picture: where, how far behind, what was decided, why, what waits, and the busiest tenants.

    ``clock_ms`` is this machine's time (Unix ms): how long a write waits goes by it, as in `memsluice quarantine`,
    and not by the latest record, which may be as old as the log. On a screen that is not high enough, reasons and then
    verdicts give way to the tenants, and it is said.
    """
    head = Text.assemble((moment(seen.now_ms), "bold"), f", since {since}: {visible(where, NAME_CHARS_MAX)}")
    reasons = [(code, many) for code, many in seen.reasons if many][:REASONS_SHOWN]
    return _Picture(
        (Group(head, Text(""), *_parked(parked), *_lines(seen, clock_ms)), _stages(lags)),
        (_verdicts(seen), *([_reasons(reasons, words)] if reasons else [])),
        _tenants(seen, tenants_max, clock_ms) if seen.tenants else None,
    )


@dataclass(frozen=True, slots=True)
class _Picture:
    """Parts with an empty line between. On a screen, whose height is bounded, the last of ``middle`` give way first."""

    first: Sequence[RenderableType]
    middle: Sequence[RenderableType]
    tenants: RenderableType | None

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        kept = list(self.middle)
        if console.is_alt_screen and self.tenants is not None:

            def lines(part: RenderableType) -> int:
                return len(console.render_lines(part, options.update(height=None), pad=False)) + 1

            room = console.height - min(lines(self.tenants) - 1, TENANT_LINES_LEAST)
            while kept and sum(map(lines, (*self.first, *kept))) > room:
                kept.pop()
        for part in (*self.first, *kept):
            yield part
            yield Text(MORE if part is (*self.first, *kept)[-1] and len(kept) < len(self.middle) else "", style="dim")
        if self.tenants is not None:
            yield self.tenants


def _parked(parked: Sequence[PartitionState]) -> Iterator[Text]:
    if parked:
        where = visible(parked_places(parked), 120)
        yield Text(f"parked   {len(parked)} stand still until a person says how to go on: {where}", style="red")
        yield Text("         memsluice partition status says why", style="red")


def _lines(seen: Snapshot, clock_ms: int) -> Iterator[Text]:
    yield Text(f"rate     {seen.per_s:.1f} events a second over the last {RECENT_S} s, {seen.events} events in all")
    if seen.wait_ms is not None:
        median, high = seen.wait_ms
        yield Text(f"wait     {median} ms from intake to verdict at the median, {high} ms at the 95th percentile")
    if seen.held_since_ms is None:
        yield Text("held     nothing waits for a reviewer")
    else:
        age = duration(clock_ms - seen.held_since_ms)
        told = f"held     {seen.held} wait for a reviewer, the oldest for {age}, by this machine's clock"
        yield Text(told, style="yellow")
    for name, shift in [one for one in seen.drifts if one[1] >= DRIFT_SHOWN][:NAMES_SHOWN]:
        shown = visible(name, TENANT_CHARS_MAX)
        yield Text(f"drift    scores moved by {shift:.1f} standard deviations within a window: {shown}")
    if seen.operator_writes:
        yield Text(f"operator {_by_key(seen.operator_writes, 'writes with the operator tier')}", style="yellow")
    if seen.unverified_reads:
        yield Text(f"reads    {_by_key(seen.unverified_reads, 'returned, never admitted')}", style="red")
    if seen.redelivered:
        yield Text(f"again    {seen.redelivered} verdicts were sent again after a restart; they count once")
    if seen.unverified:
        yield Text(f"broken   {seen.unverified} audit records do not verify under this home's keys", style="red")


def _by_key(counts: Sequence[tuple[str, int]], what: str) -> str:
    named = ", ".join(f"{many} by {visible(kid, TENANT_CHARS_MAX)}" for kid, many in counts[:NAMES_SHOWN])
    more = f" and {len(counts) - NAMES_SHOWN} more keys" if len(counts) > NAMES_SHOWN else ""
    return f"{sum(many for _, many in counts)} {what}: {named}{more}"


def _table(*names: str) -> Table:
    table = Table(box=None, padding=(0, 2, 0, 0), header_style="dim")
    for number, name in enumerate(names):
        table.add_column(name, justify="right" if number else "left", no_wrap=True)
    return table


def _stages(lags: Sequence[Lag]) -> Table:
    table = _table("stage", "behind", "on partitions", "most on one")
    for lag in lags:
        behind = Text(str(lag.behind), style="yellow" if lag.behind else "green")
        table.add_row(lag.stage, behind if lag.started else "not started", str(lag.partitions), str(lag.worst))
        if lag.over_quota:
            table.add_row("", Text(str(lag.over_quota), style="yellow"), Text("over quota", style="dim"), "")
    return table


def _verdicts(seen: Snapshot) -> Table:
    table = _table("verdict", "last minute", "in all", "share")
    for decision, label in LABELS.items():
        many = seen.decisions.get(decision, 0)
        share = f"{many / seen.events:.0%}" if seen.events else "·"
        table.add_row(label, str(seen.recent.get(decision, 0) or "·"), str(many or "·"), share)
    return table


def _reasons(reasons: Sequence[tuple[str, int]], words: Words) -> Table:
    table = _table("why", "in all", "means")
    table.columns[2].justify, table.columns[2].no_wrap = "left", False
    for code, many in reasons:
        meaning = words(code) if words(code) != code else ""
        table.add_row(Text(visible(code, TENANT_CHARS_MAX)), str(many), Text(meaning, style="dim"))
    return table


def _tenants(seen: Snapshot, tenants_max: int, clock_ms: int) -> RenderableType:
    table = _table("tenant", "1 min", *OWN.values(), "waits", "oldest", "calibration")
    table.padding = (0, 1, 0, 0)
    for tenant in seen.tenants[:tenants_max]:
        since_ms = tenant.held_since_ms
        table.add_row(
            Text(visible(tenant.name, TENANT_CHARS_MAX)),
            str(tenant.recent.count(seen.now_ms) or "·"),
            *(str(tenant.decisions[decision] or "·") for decision in OWN),
            str(len(tenant.held) + tenant.held_more or "·"),
            "·" if since_ms is None else duration(clock_ms - since_ms),
            _calibration(tenant),
        )
    left = len(seen.tenants) - tenants_max
    more = [f"{left} more tenants"] if left > 0 else []
    more += [f"{seen.dropped} quiet ones no longer followed"] if seen.dropped else []
    return Group(table, Text(", ".join(more), style="dim")) if more else table


def _calibration(tenant: Tenant) -> Text:
    return Text(visible(f"{tenant.phase} {tenant.window_size}" if tenant.phase else "·", TENANT_CHARS_MAX))


def as_data(
    seen: Snapshot, lags: Sequence[Lag], where: str, tenants_max: int, parked: Sequence[PartitionState] = ()
) -> dict[str, Any]:
    """Return the same as JSON values."""
    return {
        "now_ms": seen.now_ms,
        "where": where,
        "lag": {
            lag.stage: {
                "behind": lag.behind,
                "partitions": lag.partitions,
                "worst": lag.worst,
                "started": lag.started,
                "over_quota": lag.over_quota,
            }
            for lag in lags
        },
        "parked": [{"stage": state.stage, "partition": state.partition} for state in parked],
        "records_read": seen.read,
        "events": seen.events,
        "events_per_s": round(seen.per_s, 3),
        "redelivered": seen.redelivered,
        "unverified": seen.unverified,
        "decisions": {decision.value: seen.decisions.get(decision, 0) for decision in LABELS},
        "decisions_last_minute": {decision.value: seen.recent.get(decision, 0) for decision in LABELS},
        "reasons": dict(seen.reasons),
        "wait_ms": None if seen.wait_ms is None else {"p50": seen.wait_ms[0], "p95": seen.wait_ms[1]},
        "drift": dict(seen.drifts[:tenants_max]),
        "unverified_reads": dict(seen.unverified_reads),
        "operator_writes": dict(seen.operator_writes),
        "held": seen.held,
        "held_since_ms": seen.held_since_ms,
        "tenants_followed": len(seen.tenants),
        "tenants_dropped": seen.dropped,
        "tenants": [
            {
                "tenant": tenant.name,
                "last_minute": tenant.recent.count(seen.now_ms),
                "last_ms": tenant.last_ms,
                "decisions": dict(tenant.decisions),
                "held": len(tenant.held) + tenant.held_more,
                "held_since_ms": tenant.held_since_ms,
                "phase": tenant.phase,
                "window_size": tenant.window_size,
                "history_size": tenant.history_size,
            }
            for tenant in seen.tenants[:tenants_max]
        ],
    }
