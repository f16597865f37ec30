"""What a worker says that cannot start."""

from pathlib import Path

from memsluice.runtimes.kafka.worker import EXIT_FAILED

from .harness import NOWHERE, Lab


def test_a_broker_that_is_not_there_is_named_with_what_starts_one(tmp_path: Path) -> None:
    """The worker ends with its code for failures, and its log says where it knocked and what to run."""
    lab = Lab(NOWHERE, tmp_path)
    worker = lab.start(lab.stage("Stamp", "batch"))
    try:
        assert worker.wait() == EXIT_FAILED
    finally:
        worker.kill()
    assert "no broker answers at 127.0.0.1:1; `memsluice stack up`" in worker.text()
    assert "KafkaConnectionError" not in worker.text()
