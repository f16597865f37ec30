"""Whether a service says that it is ready, whoever asks how often."""

import threading

from tests.patience import HANG_S

from memsluice.http_service.readiness import ASKED_EVERY_S, Missing


def test_many_at_once_ask_the_broker_once() -> None:
    """While one waits for the broker the others take no thread for it, and nothing is said to be there before it was
    asked."""
    begun, answered, asked = threading.Event(), threading.Event(), []

    def slow() -> bool:
        asked.append(1)
        begun.set()
        return answered.wait(HANG_S)

    missing = Missing({"the broker does not answer": slow}, lambda: 0.0)
    first = threading.Thread(target=missing)
    first.start()
    assert begun.wait(HANG_S)
    assert [missing() for _ in range(20)] == [["the broker does not answer"]] * 20
    answered.set()
    first.join(HANG_S)
    assert missing() == []
    assert len(asked) == 1


def test_what_was_found_stands_for_a_while() -> None:
    """Then it is asked again."""
    now, there = [0.0], [True]
    missing = Missing({"it is away": lambda: there[0]}, lambda: now[0])
    assert missing() == []
    there[0] = False
    assert missing() == []
    now[0] = ASKED_EVERY_S
    assert missing() == ["it is away"]
