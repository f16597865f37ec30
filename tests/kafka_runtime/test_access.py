"""With how few rights a worker runs, and what it says of itself."""

import pytest

from memsluice.runtimes.kafka.worker import EXIT_FAILED, EXIT_OK

from .harness import Lab

pytestmark = pytest.mark.stack

USER = "screen"


def _rights(lab: Lab) -> list[tuple[str, str, str]]:
    return [
        ("topic", lab.source, "READ"),
        ("topic", f"{lab.group}-state*", "READ"),
        ("topic", f"{lab.group}-state*", "WRITE"),
        ("group", lab.group, "READ"),
        ("transactional_id", f"{lab.group}-*", "WRITE"),
    ]


def test_a_worker_runs_under_least_privilege(lab: Lab) -> None:
    """READ in, WRITE out, READ and WRITE on its changelog, READ on its group, WRITE under its transactional ids.

    Nothing else; no topic is created.
    """
    lab.prepare(2)
    lab.fill(50, 2)
    lab.allow(USER, [*_rights(lab), ("topic", lab.target, "WRITE")])
    worker = lab.start(lab.stage("Count", "stateful", user=USER))
    lab.until(lambda: sum(lab.committed().values()) == 50, "everything committed")
    assert worker.stop() == EXIT_OK
    lab.holds(lab.target, 50)


def test_a_worker_that_may_not_write_ends_uncommitted(lab: Lab) -> None:
    """A missing right on the output is a failure said aloud, not a record passed over."""
    lab.prepare(2)
    lab.fill(50, 2)
    lab.allow(USER, _rights(lab))
    worker = lab.start(lab.stage("Count", "stateful", user=USER))
    assert worker.wait() == EXIT_FAILED
    assert "TopicAuthorizationFailedError" in worker.text()
    assert lab.committed() == {}


def test_a_worker_that_may_not_join_its_group_ends_and_says_so(lab: Lab) -> None:
    """Without the group it would take no record for ever, and look as if it were starting."""
    lab.prepare(2)
    lab.allow(USER, [rule for rule in _rights(lab) if rule[0] != "group"])
    worker = lab.start(lab.stage("Count", "stateful", user=USER))
    assert worker.wait() == EXIT_FAILED
    assert f"user {USER} may not join the group {lab.group}" in worker.text()


def test_progress_tells_commits_and_lag(lab: Lab) -> None:
    """The callback names every input partition with its committed offset, the log's end, and what is between."""
    lab.prepare(2)
    lab.fill(20, 2)
    worker = lab.start(lab.stage("Stamp", "batch"))
    rows = [(lab.source, partition, 10, 10, 0) for partition in (0, 1)]
    lab.until(lambda: f"progress {rows}" in worker.text(), "progress up to the end")
    assert worker.stop() == EXIT_OK
