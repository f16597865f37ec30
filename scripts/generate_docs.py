#!/usr/bin/env python3
"""Writes what is generated: docs/topics.md from topics/*.yaml, docs/commands.md from the
help texts, docs/metrics.md and the dashboard from the registry, and the test vectors of
signed events and commands.

With --check, says whether they are current.
"""

import sys
from pathlib import Path

from command_vectors import vectors as command_vectors
from commands_page import commands_page
from metrics_pages import dashboard, metrics_page
from signing_vectors import vectors

from memsluice.topics.spec import FOREVER_MS, Desired, TopicSpec, load

TOP = Path(__file__).resolve().parent.parent
DAY_MS = 86_400_000
GIB = 1024**3
_HEAD = """\
# Topics

Generated from the files in `topics/` by `make docs`. `memsluice topics plan` shows how a broker differs from them,
`memsluice topics apply` changes it, and refuses to change a partition count: a tenant's partition depends on it, and
with the partition its order.

Replication is what a cluster with enough brokers gets. Auto-creation is off; a user has what is listed, nothing else.
"""


def _retention(topic: TopicSpec) -> str:
    if topic.spec.cleanup == "compact":
        return "compacted"
    cap = "" if topic.spec.retention_size is None else f", {topic.spec.retention_size / GIB:g} GiB a partition at most"
    return ("for ever" if topic.spec.retention == FOREVER_MS else f"{topic.spec.retention / DAY_MS:g} days") + cap


def _row(topic: TopicSpec) -> str:
    access = "; ".join(f"{entry.principal}: {', '.join(entry.operations).lower()}" for entry in topic.spec.access)
    size = f"{topic.spec.max_message / 1024:g} KiB"
    cells = (f"`{topic.name}`", topic.spec.partitions, topic.spec.replication, _retention(topic), size, access)
    return f"| {' | '.join(map(str, cells))} |"


def topics_page(desired: Desired) -> str:
    """Return the page about the topics and their access rules."""
    lines = [_HEAD, "| topic | partitions | replicas | kept | largest record | access |", "|---|---|---|---|---|---|"]
    lines += [_row(topic) for topic in desired.topics]
    lines += ["", "## What they carry"]
    for topic in desired.topics:
        lines += ["", f"### {topic.name}", "", topic.meta.description.strip(), "", f"Records: {topic.meta.schema_}."]
    lines += ["", "## Access beyond a topic", "", "| user | to | operations | why |", "|---|---|---|---|"]
    for grant in desired.grants:
        name = f"{grant.resource} `{grant.name}{'*' if grant.match == 'prefixed' else ''}`"
        lines.append(f"| {grant.principal} | {name} | {', '.join(grant.operations).lower()} | {grant.reason} |")
    return "\n".join(lines) + "\n"


def pages() -> dict[str, str]:
    """Return what is generated: path below the top, and text."""
    return {
        "docs/topics.md": topics_page(load(TOP / "topics")),
        "docs/commands.md": commands_page(),
        "docs/metrics.md": metrics_page(),
        "deploy/grafana/memsluice.json": dashboard(),
        "docs/signing-vectors.json": vectors(),
        "docs/command-vectors.json": command_vectors(),
    }


def main() -> int:
    """Write the pages, or with ``--check`` return 1 where one is not current."""
    made = pages()
    stale = [name for name, text in made.items() if not (TOP / name).exists() or (TOP / name).read_text() != text]
    if "--check" in sys.argv[1:]:
        print(f"stale: {', '.join(stale)}; run: make docs" if stale else "docs are current")
        return 1 if stale else 0
    for name in stale:
        (TOP / name).write_text(made[name])
        print(f"wrote {name}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
