"""How the cost of telemetry is computed: each stack by its own end, and the processor time until then."""

from types import SimpleNamespace
from typing import Any

import pytest

from memsluice_lab.figures import telemetry
from memsluice_lab.figures.telemetry import Side, interval


def test_the_cost_is_what_the_side_with_telemetry_lands_less() -> None:
    """The other way round, a cost would be a gain, and hold."""
    off, on = Side(100, 10.0, 2.0), Side(100, 12.5, 2.5)
    assert telemetry._cost((off, on)) == pytest.approx(20)
    assert telemetry._cpu([(off, on)]) == pytest.approx(25)


def test_the_interval_is_of_the_medians_of_rounds_drawn_again() -> None:
    """One wild round moves it little; its ends are rounds, the lower one first."""
    low, high = interval([1.0, 2.0, 3.0, 4.0, 100.0])
    assert 1.0 <= low < 3.0 < high <= 100.0
    assert interval([2.0] * 5) == (2.0, 2.0)


class Stack:
    """A burst that lands its last write at ``last_s``, and whose workers have used ``cpu_s`` by then."""

    def __init__(self, last_s: float, cpu_s: float, told: list[str]) -> None:
        self.last_s, self.cpu_s, self.told, self.through = last_s, cpu_s, told, False
        self.running = SimpleNamespace(stop=lambda *_: None)

    def prepare(self, _: str) -> tuple[list[Any], list[Any]]:
        """Return its one worker, itself."""
        return [self], []

    def publish(self, _: list[Any]) -> int:
        """Be through."""
        self.through = True
        self.told.append("through")
        return 1_000

    def landed(self, _: list[Any]) -> list[int]:
        """Return two times, the last one last."""
        self.told.append("looked up")
        return [1_500, 1_000 + int(1_000 * self.last_s)]


def test_each_stack_is_timed_to_its_own_end_and_looked_up_once_both_are_through(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Landed by the first one's end would count a second's delay many times; reading a topic would slow the other."""
    monkeypatch.setattr(telemetry, "_pin", lambda running, cores: None)
    monkeypatch.setattr(telemetry, "_cpu_s", lambda workers: workers[0].cpu_s if workers[0].through else 0.0)
    told = list[str]()
    sides = telemetry._at_once(Stack(4.0, 2.0, told), Stack(5.0, 3.0, told), "x")  # type: ignore[arg-type]
    assert sides == (Side(2, 4.0, 2.0), Side(2, 5.0, 3.0))
    assert told == ["through"] * 2 + ["looked up"] * 2
