"""The keys of both pages, once: what is pressed, what it does, and the line of the help.

The console's desk gives the same keys the same meaning. It has none for what a browser does anyway (scrolling, reading
anew, going back), nor for what stands on its pages: results beside each write, a button beside what another reviewer
has claimed, and filters that were saved, above the lists.
"""

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key, by its character or its name; ``does`` is the method that it calls; ``words`` say what it does."""

    keys: tuple[str, ...]
    does: str
    words: str

    @property
    def shown(self) -> str:
        """The keys as a person calls them."""
        return " ".join(SHOWN.get(key, key) for key in self.keys)


SHOWN = {
    "R": "shift+r", "X": "shift+x", "S": "shift+s", "space": "space", "pagedown": "PgDn", "pageup": "PgUp",
    "escape": "Esc", "enter": "Enter",
}  # fmt: skip
MOVING = (
    KeyLine(("j",), "next", "next"),
    KeyLine(("k",), "previous", "previous"),
    KeyLine(("space", "pagedown"), "page_down", "scroll on by a screen"),
    KeyLine(("b", "pageup"), "page_up", "scroll back by a screen"),
    KeyLine(("down",), "line_down", "scroll on by a line"),
    KeyLine(("up",), "line_up", "scroll back by a line"),
    KeyLine(("home",), "top", "to the beginning"),
    KeyLine(("end",), "bottom", "to the end"),
)
ASKING = (
    KeyLine(("/",), "filter", "filter: field:value …, or @name for a saved one"),
    KeyLine(("S",), "save", "save the filter under a name"),
    KeyLine(("g",), "reload", "read anew"),
    KeyLine(("l",), "results", "results of what was decided last"),
    KeyLine(("u",), "undo", "take back what was rejected last"),
    KeyLine(("?",), "help", "this help"),
    KeyLine(("q", "escape"), "back", "back; from the groups: leave"),
)
OF_GROUPS = (*MOVING, KeyLine(("enter",), "open", "open the group"), *ASKING)
OF_READING = (
    *MOVING,
    KeyLine(("enter",), "open", "all that is known of this one, or less again"),
    KeyLine(("r",), "release", "release this one, once it was on the screen to its end"),
    KeyLine(("x",), "reject", "reject this one, likewise"),
    KeyLine(("R",), "release_all", "release what was read of the group; shows what differs, and asks"),
    KeyLine(("X",), "reject_all", "reject what was read of the group, likewise"),
    KeyLine(("s",), "skip", "go on to the next that waits, without deciding"),
    KeyLine(("!",), "despite_claim", "decide about what others have claimed; asks"),
    KeyLine(("c",), "claim", "claim this one for an hour, or give it back"),
    KeyLine(("n",), "note", "note something about this one"),
    KeyLine(("a",), "assign", "assign this one"),
    *ASKING,
)


def found(lines: tuple[KeyLine, ...], key: str, character: str | None) -> str:
    """Return what a key does, "" for nothing. Capital letters are told from small ones by their characters."""
    for line in lines:
        if key in line.keys or (character is not None and character in line.keys):
            return line.does
    return ""
