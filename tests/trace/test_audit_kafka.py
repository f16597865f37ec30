"""Following a topic on a broker that fails. The client stands in for a fault that no broker makes on demand."""

from typing import Any

import pytest
from confluent_kafka import KafkaError, KafkaException

from memsluice.errors import BrokerUnavailable
from memsluice.readers import kafka
from memsluice.readers.kafka import KafkaTopic

FAILED = KafkaError(KafkaError._TRANSPORT, "broker went away")


class Failing:
    """A client whose partition fails: on a message, or on the call."""

    def __init__(self, on_message: bool) -> None:
        self._on_message = on_message

    def assign(self, partitions: Any) -> None:
        """Take the partitions."""

    def resume(self, partitions: Any) -> None:
        """Go on with them."""

    def consume(self, number: int, timeout: float) -> list[Any]:
        """Return nothing more."""
        return []

    def get_watermark_offsets(self, where: Any, timeout: float) -> tuple[int, int]:
        """Answer: whoever is told so was let in."""
        return 0, 0

    def poll(self, timeout: float) -> Any:
        """Return the failure, or raise it; asked only for what it heard (0 s), say nothing."""
        if timeout == 0:
            return None
        if not self._on_message:
            raise KafkaException(FAILED)
        return Broken()


class Broken:
    """A message that is an error."""

    def error(self) -> KafkaError:
        """Return it."""
        return FAILED


@pytest.mark.parametrize("on_message", [True, False])
def test_a_broker_that_fails_while_it_is_followed_is_unavailable(
    monkeypatch: pytest.MonkeyPatch, on_message: bool
) -> None:
    """Whoever waits for an answer gets the error of the house, in words, not a defect of ours."""
    monkeypatch.setattr(kafka, "Consumer", lambda settings: Failing(on_message))
    with pytest.raises(BrokerUnavailable, match="broker went away"):
        KafkaTopic({}).follow({0: 0}, 0.2)


def test_a_reader_that_was_let_in_forgets_that_it_was_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    """A refusal is told as one; what fails after the broker has let the user in is told as what it is."""
    monkeypatch.setattr(kafka, "Consumer", lambda settings: Failing(on_message=False))
    topic = KafkaTopic({})
    topic._heard(KafkaError(KafkaError._AUTHENTICATION))
    with pytest.raises(BrokerUnavailable, match="does not accept this user"):
        topic.follow({0: 0}, 0.2)
    assert topic.end(0) == 0
    with pytest.raises(BrokerUnavailable, match="broker went away"):
        topic.follow({0: 0}, 0.2)
