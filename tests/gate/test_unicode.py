"""What screening reads, and what it reports as unseen."""

import sys
import unicodedata

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memsluice.gate.unicode import MARKS_MAX, controls, normalise


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("  Two\t\n words ", "two words"),
        ("ＳＹＳＴＥＭ：", "system:"),  # full width
        ("𝐈𝐠𝐧𝐨𝐫𝐞", "ignore"),  # mathematical bold
        ("oﬃce", "office"),  # ligature
        ("Straße", "strasse"),
        ("i\u200bg\u200dn\u2060o\ufeffr\u00ade", "ignore"),
        ("\u202eabc\u202c", "abc"),
        ("a\u00a0b\u2028c\u3000d", "a b c d"),
        ("nul\x00\x1b[l", "nul[l"),
        ("tag\U000e0041\U000e007f", "tag"),
        ("vs\ufe0f\U000e0100", "vs"),
        ("e\u0301", "é"),
        ("مرحبا", "مرحبا"),
        ("ign\u043er\u0435 \u0420aypal", "ignore paypal"),  # Cyrillic o, e and Er
        ("\u043d\u0435\u0442, \u03b2-carotene, 5 \u00b5g", "\u043d\u0435\u0442, \u03b2-carotene, 5 \u03bcg"),
        ("a\u0430\u0301\u0432", "a\u00e1b"),  # the accent goes with the letter that it stands on
        ("", ""),
    ],
)
def test_normalised(written: str, read: str) -> None:
    """Disguises that leave a text readable are undone before patterns are matched; other scripts stay as they are."""
    assert normalise(written) == read


@given(st.text(max_size=60) | st.text("ab\u0430\u0432\u03b1\u03cc\u0301\u0345\u1dc4 ", max_size=12))
@example("\u0345\u0301Ǆΐ")
@example("\u1e9e\u0130\ufdfa")
@example("\u115f\u1160\u3164")
def test_normalising_twice_changes_nothing(text: str) -> None:
    """A stored normalised text can be screened again with the same result, and no invisible character survives."""
    once = normalise(text)
    assert normalise(once) == once
    assert unicodedata.is_normalized("NFKC", once)


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("plain", ()),
        ("tab\tand\r\nnew line", ()),
        ("a\u200bb", (("zero_width", 1),)),
        ("soft\u00adhyphen", (("zero_width", 4),)),
        ("\u202eevil\u202c", (("bidi", 0), ("bidi", 5))),
        ("x\U000e0041", (("tag", 1),)),
        ("x\ufe01", (("variation_selector", 1),)),
        ("x\U000e0100", (("variation_selector", 1),)),
        ("x\u3164", (("filler", 1),)),
        ("x\u2063", (("format", 1),)),
        ("x\x00\x1b", (("control", 1), ("control", 2))),
        ("a\u200db", (("zero_width", 1),)),  # a joiner between Latin letters spells nothing
        ("\u200d", (("zero_width", 0),)),
    ],
)
def test_unseen_characters_are_reported_with_their_place(text: str, found: tuple[tuple[str, int], ...]) -> None:
    """Every class of invisible character is named at its index; ordinary white space is not."""
    assert controls(text) == found


@pytest.mark.parametrize(
    "text",
    [
        "I ❤️ this",
        "1️⃣ first",
        "family 👨‍👩‍👧 and 👩🏽‍💻 and 🏳️‍🌈",
        "می‌خواهم",  # Persian: the non-joiner is spelling
        "क्‍ष",  # Hindi conjunct
    ],
)
def test_correct_spelling_is_not_reported(text: str) -> None:
    """Emoji sequences and scripts that need joiners are no finding: people write them every day."""
    assert controls(text) == ()


def test_every_ascii_control_is_seen_and_white_space_is_none() -> None:
    """The short way of plain text lets none of them through, and takes no line break or tab for one."""
    for point in range(128):
        text, white = f"a{chr(point)}b", chr(point).isspace()
        unseen = not white and (point < 32 or point == 127)
        assert controls(text) == ((("control", 1),) if unseen else ())
        assert normalise(text) == ("a b" if white else "ab" if unseen else text.lower())


def test_long_runs_of_marks_are_cut() -> None:
    """Thousands of combining marks on one letter cost the square of their number to sort: screening reads the first."""
    assert len(normalise("a" + "\u0323\u0301" * 2_000 + "b")) <= MARKS_MAX + 2
    spelled = "e" + "\u0323" * (MARKS_MAX - 1)
    assert normalise(spelled) == unicodedata.normalize("NFKC", spelled)


LOOK_ALIKES = (
    "aаα bвβ cс dԁ eеε hһн iіι jј kкκ lӏ mм nη oоο pрρ qԛ rг sѕ tтτ uцυ vѵν wѡω xхχ yуγ"  # a Latin letter, then others
)


@pytest.mark.parametrize("group", LOOK_ALIKES.split())
def test_a_letter_that_looks_latin_is_read_as_that_among_latin_ones(group: str) -> None:
    """One such letter in a word would keep a pattern from matching; a word all of that script stays what it is."""
    for other in group[1:]:
        assert normalise(f"z{other}z") == f"z{group[0]}z"
        assert normalise(other * 3) == other * 3


SHOWN = ("ARABIC", "SYRIAC", "KAITHI", "EGYPTIAN")
"""Scripts whose format characters have a shape: signs over or under numbers, joins of hieroglyphs."""
NO_LETTERS = [0x34F, 0x115F, 0x1160, 0x17B4, 0x17B5, 0x2065, 0x2800, 0x3164, 0xFFA0]
"""Characters that Unicode calls marks, letters or symbols, and that show nothing."""
BLANK = {0x115F, 0x1160, 0x2800, 0x3164, 0xFFA0}
"""Those of them that are as wide as a blank."""
SELECTORS = [*range(0x180B, 0x180E), 0x180F, *range(0xFE00, 0xFE10), *range(0xE0100, 0xE01F0)]


def test_just_what_shows_nothing_is_unseen() -> None:
    """Every format character without a shape, every control that is no white space, fillers, selectors, tags."""
    unseen = {*NO_LETTERS, *SELECTORS, *range(0xFFF0, 0xFFF9), *range(0xE0000, 0xE0080)}
    for point in range(sys.maxunicode + 1):
        category, character = unicodedata.category(chr(point)), chr(point)
        if (category == "Cf" and not unicodedata.name(character, "").startswith(SHOWN)) or (
            category == "Cc" and not character.isspace()
        ):
            unseen.add(point)
    unseen.add(ord("\u061c"))  # the Arabic letter mark, which shows nothing
    points = [point for point in range(sys.maxunicode + 1) if not 0xD800 <= point <= 0xDFFF]
    assert {point for point in points if controls(f"a{chr(point)}")} == unseen
    assert normalise("a" + "".join(map(chr, sorted(unseen - BLANK))) + "b") == "ab"
    assert all(normalise(f"a{chr(point)}b") == "a b" for point in BLANK)


def test_just_so_many_marks_in_a_row_are_read() -> None:
    """The number is UAX #15's: text that is stream-safe is read as it stands, and the mark beyond is cut."""
    spelled = "a" + "\u0316" * 30
    assert normalise(spelled) == spelled
    assert normalise(spelled + "\u0316") == spelled
