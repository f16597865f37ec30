"""One stack, several turns on it, and the check of everything at the end; what a turn is, is given."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass

from memsluice.deployment.layout import Layout
from memsluice_lab.chaos import checking, results
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.chaos.stages import Company, company, everything
from memsluice_lab.figures.registry import Setting

DRAINED_S_MAX = 300


@dataclass(frozen=True, slots=True)
class Game:
    """What is played, and on what.

    ``turn`` plays several rounds at once, because most of a round is waiting: it is given their numbers, at most
    ``at_once``, and says in words what it did in each that counts.
    """

    turn: Callable[[Company, Sequence[int], list[Violation]], list[str]]
    at_once: int
    stand: Callable[[Setting, str, int], AbstractContextManager[Company]] = company

    def play(self, setting: Setting, numbers: Sequence[int], run: str) -> tuple[list[str], list[Violation]]:
        """Play some rounds on one stack, then check it all. Returns what was done in each, and what was broken."""
        done: list[str] = []
        found: list[Violation] = []
        with counted(found), self.stand(setting, run, numbers[0]) as made:
            with counted(found):
                since = checking.begin(made.scene)
                for start in range(0, len(numbers), self.at_once):
                    rows = self.turn(made, numbers[start : start + self.at_once], found)
                    done += rows
                    for row in rows:
                        setting.say(row)
                    if found or not made.scene.alive():
                        break
                _check(made, since, found)
            found += [Violation("ended", f"{name} with {code}") for name, code in made.scene.dismiss().items()]
            setting.say(f"checked: {len(found)} violations")
            if found:
                kept = results.keep_logs(Layout(made.scene.bed.home).logs, run)
                setting.say(f"the logs are kept in {kept}")
        return done, found


@contextmanager
def counted(found: list[Violation]) -> Iterator[None]:
    """Have a scene that breaks off count, whatever broke it off, StackError or worse, and whenever it did."""
    try:
        yield
    except Exception as error:
        found.append(Violation("stuck", f"{type(error).__name__}: {error}"))


def _check(made: Company, since: checking.Since, found: list[Violation]) -> None:
    """Wait until everything is through, and add what is broken at the end."""
    if not everything(made, DRAINED_S_MAX):
        found.append(Violation("lost", f"not all decided within {DRAINED_S_MAX} s; {made.scene.ended}"))
    found += checking.from_nothing(made.scene, "third", made.sessions)[1]
    checking.landed(made.scene, since)
    before, compacted = checking.pictures(made.scene, since)
    found += checking.violations(made.scene, before, compacted)
