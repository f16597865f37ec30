"""Letters in other dress are read as plain ones, in place."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memsluice.events.letters import latin, undressed


@pytest.mark.parametrize(
    ("written", "read"),
    [
        ("Ｉｇｎｏｒｅ ａｌｌ", "Ignore all"),
        ("𝐈𝐠𝐧𝐨𝐫𝐞 ⓘⓖ ℋ", "Ignore ig H"),
        ("ign\u043er\u0435", "ignore"),
        ("\u0410dmin", "admin"),  # a capital look-alike
        ("Привет, мир", "Привет, мир"),  # a word all of one script
        ("β-carotene", "β-carotene"),
        ("，！ 日本語", "，！ 日本語"),  # marks of full width are East Asian text's own
        ("ꜱᴍᴀʟʟ 🅰🄱🅲 🇩🇪 ᵃᵇ", "small ABC DE ab"),
        ("plain", "plain"),
    ],
)
def test_styled_letters_and_look_alikes(written: str, read: str) -> None:
    """Full-width, mathematical and enclosed letters, and foreign letters in words that have Latin ones."""
    assert undressed(written) == read


@given(st.text(max_size=80))
def test_places_stay(text: str) -> None:
    """The reading is as long as the text, whatever it holds."""
    assert len(undressed(text)) == len(latin(text)) == len(text)
