"""The figure of puts that killed workers lose: what counts as lost."""

from memsluice.errors import LandingUnknown
from memsluice_lab.figures.adapter_losses import Puts


class Side:
    """Keeps what it is given, loses one without a word, and raises for another."""

    def __init__(self) -> None:
        self.texts: list[str] = []

    def put(self, person: str, key: str, text: str) -> str:
        """Do as the text says."""
        if text == "raises":
            raise LandingUnknown("silence", event_id=key)
        if text != "is lost":
            self.texts.append(text)
        return key

    def read(self, person: str, name: str) -> str | None:
        """Not asked for."""
        raise NotImplementedError

    search = every = read  # type: ignore[assignment]


def test_what_returned_and_is_not_there_counts_and_so_does_what_never_ended() -> None:
    """What raised does not, whether or not it is there; a put that hangs is told by nothing, and counts."""
    side, puts = Side(), Puts("side")
    for number, text in enumerate(("is kept", "is lost", "raises")):
        puts.put(side, "ada", number, text)
    puts.said["ada", "side-hangs"] = "hangs"
    assert puts.lost({"ada": side.texts}) == [("ada", "side-1"), ("ada", "side-hangs")]
    assert puts.lost({"ada": [*side.texts, "is lost", "raises"]}) == [("ada", "side-hangs")]
    assert puts.lost({"ben": side.texts}) == [("ada", "side-0"), ("ada", "side-1"), ("ada", "side-hangs")]
