"""docs/provenance-results.md: what provenance stops, beside what the paper says of its own verifier (seed 001, 6.4)."""

from pathlib import Path

from memsluice_lab.figures.measurements import Measurement
from memsluice_lab.figures.registry import number
from memsluice_lab.vectors import PAPER

PAGE = Path("docs/provenance-results.md")
NAME = "provenance_through"
TABLE_6 = (
    ("199 payloads as writes of 4 origins", "Injection payloads", "199 of 199 blocked"),
    ("pairs of 50 concurrent sessions", "Cross-session isolation (50 sessions, 2,450 pairs)", "0 leaks"),
    ("SOUL.md, SHA-256 before and after", "Integrity of SOUL.md (SHA-256)", "identical"),
)
"""Row of the figure, name and result of the paper's Table 6."""
_HEAD = """\
# What provenance stops

Seed 001 tests its verifier by calling it. Here the same attempts go the whole way: signed, through Kafka, the Faust
stages and Weaviate, and then asked for by real recalls. Each vector is played from each of four untrusted sources (web,
tool, skill, upload), by the source itself and by agents and people who pass it on. Written by `make figure
NAME=provenance_through`; not edited by hand.
"""


def render(kept: Measurement | None) -> str:
    """Return the page from the latest measurement that is kept."""
    if kept is None:
        return f"{_HEAD}\nNot measured yet.\n"
    rows = dict(kept.rows)
    lines = [
        _HEAD,
        f"{kept.date}, commit {kept.commit}, {kept.machine}{_stale(kept)}.",
        "",
        "## Table 6 of the paper",
        "",
    ]
    lines += ["| test | the paper's verifier | the whole product |", "|---|---|---|"]
    lines += [f"| {name} | {paper} | {rows.get(row, 'not measured')} |" for row, name, paper in TABLE_6]
    lines += [
        "",
        "## Table 7 of the paper",
        "",
        "| attack | the paper's verifier | the whole product |",
        "|---|---|---|",
    ]
    for vector, (name, paper) in PAPER.items():
        found = next((what for row, what in rows.items() if row.startswith(f"{vector} ")), "not measured")
        lines.append(f"| {vector}: {name} | {paper} | {found} |")
    told = {row for row, *_ in TABLE_6} | {row for row in rows if row.split(" ")[0] in PAPER}
    lines += ["", "## Beyond the paper", "", "| test | the whole product |", "|---|---|"]
    lines += [f"| {row} | {what} |" for row, what in rows.items() if row not in told]
    lines += ["", f"In all, `{NAME}` = {number(kept.value)}.", "", *(f"{note}\n" for note in kept.notes)]
    return "\n".join(lines).rstrip() + "\n"


def _stale(kept: Measurement) -> str:
    return "; stale: the code that it was measured on changed since, or is not known" if kept.stale else ""


def write(folder: Path, kept: Measurement | None) -> None:
    """Write the page into the repository ``folder``."""
    (folder / PAGE).write_text(render(kept), encoding="utf-8")
