"""*screen* without consequences: the same decisions over the same rows, under other policies, and nothing sent.

A rescreen reads the sealed log again from where it begins and lets this stage decide each event. It signs nothing, so
no admission exists that nobody ordered; policies are those it was given, whatever the log activated.
"""

from collections.abc import Callable, Iterable

from memsluice.envelope.keys import Keyring
from memsluice.envelope.partition_orders import Missing
from memsluice.envelope.seals import Sealed
from memsluice.envelope.verdict import Verdict
from memsluice.events.records import Output, Record, RowChange, Rows
from memsluice.gate.policy.model import Policy
from memsluice.gate.state.kinds import POSITION, PositionRow
from memsluice.stages.base import Step
from memsluice.stages.emit import Opened
from memsluice.stages.screen import INPUTS, ScreenStage, position_change


class RehearsalStage(ScreenStage):
    """A :class:`ScreenStage` whose steps have a verdict and row changes, and never an output.

    ``losses`` are intake records, by partition, that an operator acknowledged as lost: the log goes on behind them.
    """

    def __init__(
        self,
        keys: Callable[[], Keyring],
        policies: Callable[[str], Policy],
        partitions: int,
        losses: Iterable[tuple[int, Missing]] = (),
    ) -> None:
        super().__init__(keys, policies, partitions)
        self._losses = {(partition, lost.topic, lost.first): lost for partition, lost in losses}

    def _known_lost(self, partition: int, topic: str, last: PositionRow) -> Missing | None:
        due = 0 if last.offset is None else last.offset + 1
        return self._losses.get((partition, topic, due))

    def skip(self, record: Record, rows: Rows) -> Step:
        """Pass over a record of a tenant that is not asked for: its place counts, and the clock it sets.

        Raises SealError, GapError, StateError.
        """
        sealed, now_ms, delivered = self._opened(self._keys(), record, rows)
        again = delivered or (sealed.type != "marker" and self._has_its_row(sealed, rows))
        return Step() if again else Step(changes=[position_change(sealed, now_ms)])

    def _repeated(self, sealed: Sealed, position: RowChange) -> Step:
        """Pass over a repetition behind a record that cannot be read: its place is before what is decided next."""
        return Step()

    def lost(self) -> Step:
        """Forget the place in the log, after a record that cannot be read: what comes next is no gap."""
        return Step(changes=[RowChange(POSITION.key("", topic), None) for topic in INPUTS])

    def _policy(self, sealed: Sealed, rows: Rows) -> Policy:
        return self._policies(sealed.tenant)

    def _signers(self, keyring: Keyring) -> tuple[str, str]:
        return "", ""

    def _sent(self, keyring: Keyring, sealed: Sealed, verdict: Verdict, record: Record, opened: Opened) -> list[Output]:
        return []
