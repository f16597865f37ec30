"""Rounds of a pause: workers stop in the middle, others take over, and each wakes up into its work in its own time.

Every stage has three workers, two of which are stopped at one moment, each for a time of its own. So a turn of six
rounds lasts as long as its longest pause, workers wake up while others still hang, and the group changes hands again
and again. A round is one worker's: stopped with work in its hands, shut out by the group, and awake again.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from memsluice.errors import StackError
from memsluice.topics import names
from memsluice_lab.chaos.backlog import pile_up
from memsluice_lab.chaos.checker import Violation
from memsluice_lab.chaos.following import members, uncommitted, wait
from memsluice_lab.chaos.playing import Game
from memsluice_lab.chaos.stages import Company
from memsluice_lab.chaos.zombies import BACK_S_MAX, TAKEN_OVER_S_MAX, hang
from memsluice_lab.figures.bed import STAGES, Worker

PAUSE_S = (12, 90)
CREW = 3
DECIDED_S_MAX = 120
LATE_S_MAX = 90
"""How long a worker that woke up may take to come back, once all else of the turn is done."""
LIGHT_S = 0.5
MARKERS_MAX = 2
"""Commit markers at a partition's end that no commit of its reader covers."""
FED = 60
"""Records that wait for each stage before its workers are struck: some for each of them."""


@dataclass(slots=True)
class Pause:
    """A worker that hangs, and what came of it. Times are monotonic, in seconds."""

    worker: Worker
    wakes_s: float
    """When it is to wake, unless it was not shut out yet."""
    uncommitted: int = 0
    """Records of its partitions that it had not committed, taken or not, and commit markers among them."""
    partitions: int = 0
    shut_out: bool = False
    awake_s: float | None = None
    back: bool = False

    @property
    def counts(self) -> bool:
        """Whether it hung with work that was not committed, markers aside, and its group went on without it."""
        return self.uncommitted > MARKERS_MAX * self.partitions and self.shut_out

    @property
    def over(self) -> bool:
        """Whether it is back in its group, or had the time to be."""
        return self.back or (self.awake_s is not None and time.monotonic() - self.awake_s > BACK_S_MAX)


def turn(made: Company, numbers: Sequence[int], found: list[Violation]) -> list[str]:
    """Play as many rounds as there are numbers, of each stage in turn."""
    scene, chance = made.scene, made.chance
    _crews(made)
    victims: list[Worker] = []
    for number in numbers:
        crew = made.crew(STAGES[number % len(STAGES)])
        free = [one for one in crew if one not in victims]
        if len(crew) - len(free) < CREW - 1:  # one of each stage goes on
            victims.append(chance.choice(free))
    pauses = _strike(made, victims)
    began = time.monotonic()
    fresh = made.join(STAGES[numbers[0] // len(STAGES) % len(STAGES)])  # while others of its stage hang
    for pause in pauses:
        pause.wakes_s = began + chance.uniform(*PAUSE_S)
    made.after()
    _sleep(made, pauses)
    made.settled(fresh)
    if not scene.verdicts.until(set(scene.work.said), DECIDED_S_MAX, scene.alive):
        found.append(Violation("lost", f"round {numbers[0]} on: not all decided; {scene.ended}"))
    made.light()
    counted = [pause for pause in pauses if pause.counts]
    if len(counted) < len(pauses):
        scene.bed.setting.say(f"{len(pauses) - len(counted)} of {len(pauses)} pauses do not count")
    found += _absent(made, pauses)
    dismissed = chance.choice([one for one in made.crew(fresh.stages[0]) if one is not fresh])
    scene.kill(dismissed)
    return [_said(pause, began) for pause in counted]


def _crews(made: Company) -> None:
    """Give every stage as many workers as it is to have, with partitions of their own."""
    started = []
    for stage in STAGES:
        for _ in range(CREW - len(made.crew(stage))):
            started.append(made.join(stage))
    for worker in started:
        made.settled(worker)


def _strike(made: Company, victims: Sequence[Worker]) -> list[Pause]:
    """Stop workers in the middle of their work, at the first thing that comes of what had piled up before them."""
    scene, assigned = made.scene, dict[int, set[int]]()

    def known() -> bool:
        assigned.update({id(worker): _partitions(made, worker) for worker in victims})
        return all(assigned.values())

    if not wait(known, TAKEN_OVER_S_MAX, 0.5):  # none while a group is still about its members
        raise StackError("a group did not say who has which partitions")
    pile_up(made, victims, FED)
    before = _ends(made)
    hang(scene, victims, lambda: _ends(made) != before)
    behind = {stage: uncommitted(scene.bed, stage) for stage in {worker.stages[0] for worker in victims}}
    return [
        Pause(worker, 0.0, sum(behind[worker.stages[0]][number] for number in numbers), len(numbers))
        for worker in victims
        if (numbers := assigned[id(worker)])
    ]


def _ends(made: Company) -> list[int]:
    return [sum(made.scene.bed.ends(topic)) for topic in (names.SEALED, names.ACCEPTED, names.STORE)]


def _partitions(made: Company, worker: Worker) -> set[int]:
    found = members(made.scene.bed, names.GROUPS[worker.stages[0]])
    return set(found.get(worker.replica, ()))


def _sleep(made: Company, pauses: Sequence[Pause]) -> None:
    """Wake each worker in its time, and wait until all are back; meanwhile a little goes on being said."""
    scene, deadline = made.scene, time.monotonic() + PAUSE_S[1] + TAKEN_OVER_S_MAX + BACK_S_MAX
    while not all(pause.over for pause in pauses) and time.monotonic() < deadline and scene.alive():
        made.light()
        time.sleep(LIGHT_S)
        stages = {pause.worker.stages[0] for pause in pauses}
        present = {stage: members(scene.bed, names.GROUPS[stage]) for stage in stages}
        for pause in pauses:
            _look(made, pause, present[pause.worker.stages[0]])
    for pause in pauses:
        if pause.awake_s is None:  # was not shut out, or somebody ended: nobody hangs beyond the turn
            _wake(made, pause)


def _look(made: Company, pause: Pause, present: Mapping[str, object]) -> None:
    now, there = time.monotonic(), pause.worker.replica in present
    if pause.awake_s is None:
        pause.shut_out = pause.shut_out or (bool(present) and not there)
        if pause.shut_out and now >= pause.wakes_s:
            _wake(made, pause)
    elif there:
        pause.back = True


def _wake(made: Company, pause: Pause) -> None:
    made.scene.nemesis.resume(pause.worker)
    pause.awake_s = time.monotonic()


def _absent(made: Company, pauses: Sequence[Pause]) -> list[Violation]:
    """Return who woke up and is not in its group again, after as long as that may take on a busy machine."""
    absent = []
    for pause in pauses:
        if pause.back:
            continue
        worker = pause.worker
        pause.back = wait(partial(_is_there, made, worker), LATE_S_MAX, 0.5)
        if not pause.back:
            code = worker.process.poll()
            end = "still runs" if code is None else f"ended with {code}"
            absent.append(Violation("stuck", f"{worker.stages[0]} {worker.replica} woke up, is not back and {end}"))
    return absent


def _is_there(made: Company, worker: Worker) -> bool:
    return worker.replica in members(made.scene.bed, names.GROUPS[worker.stages[0]])


def _said(pause: Pause, began: float) -> str:
    stage, slept_s = pause.worker.stages[0], (pause.awake_s or began) - began
    end = "back" if pause.back else "not back"
    return f"{stage} paused {slept_s:.0f} s, {pause.uncommitted} uncommitted, {end}"


GAME = Game(turn, (CREW - 1) * len(STAGES))
