"""Where the audit is read, and what is said of an event that is not in it."""

from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

from memsluice.deployment.home import Home
from memsluice.errors import ConfigError
from memsluice.escaping import visible
from memsluice.operations.target import on_broker
from memsluice.topics.names import AUDIT, DEAD_LETTER, OVERFLOW

if TYPE_CHECKING:
    from memsluice.operations.trace.collect import Traced
    from memsluice.readers.kafka import KafkaTopic
    from memsluice.readers.local import LocalTopic

SHOWN_CHARS_MAX = 160


@contextmanager
def audit_topic(home: Path | None) -> Iterator["KafkaTopic | LocalTopic"]:
    """Give the audit topic of the running stack (or the deployment that the environment names), else the home's log.

    Raises ConfigError where there is neither.
    """
    place = Home.at(home)
    with ExitStack() as opened:
        if on_broker(place, home):
            from memsluice.deployment.connection import Connection
            from memsluice.readers.kafka import KafkaTopic

            topic = KafkaTopic.of(Connection.load(home))
            opened.callback(topic.close)
            yield topic
        elif place.log_file.exists():
            from memsluice.readers.local import LocalTopic

            log = place.local_log(reading=True)
            opened.callback(log.close)
            yield LocalTopic(log, name=f"the embedded log in {place.path}")
        else:
            raise ConfigError(
                f"There is no audit topic at {place.path}: no stack runs there, and there is no embedded log. Start a "
                "stack with `memsluice stack up`, or run `memsluice demo`"
            )


def lost(topic: "KafkaTopic | LocalTopic", home: Path | None, tenant: str | None) -> str:
    """Return in words which records somebody took for lost, among which an event may be that was never decided."""
    from memsluice.operations.partitions.desk import PartitionDesk
    from memsluice.operations.partitions.words import acknowledged, undecided
    from memsluice.readers.local import LocalTopic

    if isinstance(topic, LocalTopic):
        return ""
    with closing(PartitionDesk.at(home)) as desk:
        losses = undecided(desk.accepted(), tenant)
    return "".join(f"\nIt may be among records that were {visible(acknowledged(loss), 900)}." for loss in losses)


def as_data(found: "Traced", event_id: str, where: str, now_ms: int) -> dict[str, object]:
    """Return what was found as JSON values. ``now_ms`` is Unix ms."""
    ancestors = sorted(found.ancestors.values(), key=lambda life: (life.tenant, life.event_id))
    return {
        "event_id": event_id,
        "looked_in": where,
        "partitions": list(found.partitions),
        "records_read": found.read,
        "unverified": found.unverified,
        "left_out": found.left_out,
        "lives": [life.as_data(now_ms) for life in found.lives],
        "ancestors": [life.as_data(now_ms) for life in ancestors],
        "begin_so": list(found.begin_so),
        "same_text": None if found.same_text is None else found.same_text.as_data(),
    }


def not_found(found: "Traced", event_id: str, tenant: str | None, where: str) -> str:
    """Return one line that says which records were searched, whole ids that begin so, and where else it may be."""
    of = "any tenant" if tenant is None else f"tenant {visible(tenant, SHOWN_CHARS_MAX)}"
    partitions = "all partitions" if tenant is None else f"partition {found.partitions[0]}"
    ids = ", ".join(visible(one, SHOWN_CHARS_MAX) for one in found.begin_so)
    longer = f" An id is needed whole; these begin so: {ids}." if ids else ""
    broken = f" {found.unverified} records did not verify under this home's keys." if found.unverified else ""
    return (
        f"not found: no event {visible(event_id, SHOWN_CHARS_MAX)} of {of} among the {found.read} records of {AUDIT} "
        f"({partitions}) in {visible(where)}.{longer}{broken} Input that could not be read or authenticated has no "
        f"verdict: it is in {DEAD_LETTER} (memsluice dead-letters list). An event published a moment ago may not be "
        f"decided yet, and one of a tenant over its quota waits in {OVERFLOW} (memsluice top)."
    )
