"""Which dead letters are asked for: by reason, intake topic, partition, time and claimed tenant. Pure."""

from dataclasses import dataclass

from memsluice.operations.dead_letters.letters import DeadLetter, LetterState, Why


@dataclass(frozen=True, slots=True)
class LetterFilter:
    """What to look for; None is anything. Times are Unix ms, ``since_ms`` included and ``until_ms`` not.

    ``tenant`` is what an input claims, which nobody verified. ``states`` None is all of them.
    """

    letter_ids: frozenset[str] | None = None
    reason: str | None = None
    topic: str | None = None
    partition: int | None = None
    since_ms: int | None = None
    until_ms: int | None = None
    tenant: str | None = None
    states: frozenset[LetterState] | None = None

    def matches_header(self, why: Why) -> bool:
        """Whether a letter is asked for, as far as the gate's header tells."""
        return (
            (self.letter_ids is None or why.letter_id in self.letter_ids)
            and (self.reason is None or why.reason == self.reason)
            and (self.topic is None or why.topic == self.topic)
            and (self.partition is None or why.partition == self.partition)
            and (self.since_ms is None or why.append_ms >= self.since_ms)
            and (self.until_ms is None or why.append_ms < self.until_ms)
        )

    def matches(self, letter: DeadLetter) -> bool:
        """Whether a letter is asked for, leaving its state aside."""
        return self.matches_header(letter.why) and self.tenant in (None, letter.claims.tenant)

    def wants(self, state: LetterState) -> bool:
        """Whether letters in this state are asked for."""
        return self.states is None or state in self.states
