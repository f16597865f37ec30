"""What a run of replays showed to a person: kept beside the run, so that an acceptance is of that and nothing else."""

from pathlib import Path

import orjson

from memsluice.deployment.paths import append_private
from memsluice.errors import NotFound
from memsluice.operations.held.entries import HeldWrite
from memsluice.operations.runs import SHOWN_SUFFIX, file_of

Shown = tuple[str, str, int, str]
"""Tenant, event id, intake offset, and digest of the content."""


def name_of(entry: HeldWrite) -> Shown:
    """Return what tells an entry and its content from every other."""
    return entry.tenant, entry.event_id, entry.offset, entry.digest


def note(folder: Path, run_id: str, entry: HeldWrite) -> None:
    """Keep that a run showed an entry's content."""
    append_private(file_of(folder, run_id).with_suffix(SHOWN_SUFFIX), orjson.dumps(name_of(entry)).decode() + "\n")


def shown_by(folder: Path, run_id: str) -> frozenset[Shown]:
    """Return what a run showed here within the last day. Raises NotFound where that is nothing, InvalidArgument."""
    file = file_of(folder, run_id).with_suffix(SHOWN_SUFFIX)
    try:
        lines = [orjson.loads(line) for line in file.read_bytes().splitlines()]
        return frozenset((str(t), str(event), int(offset), str(digest)) for t, event, offset, digest in lines)
    except (OSError, orjson.JSONDecodeError, TypeError, ValueError):
        raise NotFound(
            f"run {run_id} showed nothing here that could be accepted, or it was more than a day ago: replay again, "
            "and read what is shown"
        ) from None
