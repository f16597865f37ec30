"""Other addresses and numbers for the same line: what a text wants must not hang on whom the grammar happens to name.

The files have hosts under reserved names only, and few of them; a model would know these, and read any other address as
an honest one. So in some texts of either class each address, host and longer number becomes a random one.
"""

import random
import re
from importlib import resources

import yaml

_ADDRESS = re.compile(
    r"(?P<mail>[\w.+-]+@[\w-]+(?:\.[\w-]+)+)|(?P<url>https?://[^\s\"'<>)，。、]+)|(?P<host>(?:[\w-]+\.)+(?:example|test|invalid)\b)"
    r"|(?P<number>\d[\d -]{2,}\d)",
    re.ASCII,
)
_WORDS: dict[str, list[str]] = yaml.safe_load(
    (resources.files("memsluice_lab.wording") / "renaming.yaml").read_text(encoding="utf-8")
)
_SOUNDS, _ENDS, _PEOPLE, _ROLES = (_WORDS[name] for name in ("sounds", "ends", "people", "roles"))


def renamed(text: str, rng: random.Random) -> str:
    """Return the text with random addresses, hosts and numbers; what occurs twice is renamed alike."""
    known = dict[str, str]()
    return _ADDRESS.sub(lambda found: known.setdefault(found[0], _other(found, rng)), text)


def _other(found: re.Match[str], rng: random.Random) -> str:
    end = "." if found[0].endswith(".") else ""  # of the sentence
    match found.lastgroup:
        case "mail":
            return f"{_local(rng)}@{_host(rng)}{end}"
        case "url":
            return f"{rng.choice(('https', 'https', 'http'))}://{_host(rng)}{_path(rng)}{end}"
        case "host":
            return _host(rng)
    return "".join(str(rng.randrange(10)) if sign.isdigit() else sign for sign in found[0])


def _word(rng: random.Random) -> str:
    return "".join(rng.choices(_SOUNDS, k=rng.choice((2, 2, 3, 4))))


def _host(rng: random.Random) -> str:
    parts = [rng.choice(("www", "mail", "app", _word(rng)))] if rng.random() < 0.2 else []
    return ".".join((*parts, rng.choice((_word(rng), f"{_word(rng)}-{_word(rng)}")), rng.choice(_ENDS)))


def _local(rng: random.Random) -> str:
    person, other = rng.choice(_PEOPLE), rng.choice((*_PEOPLE, *_SOUNDS))
    some = (
        rng.choice(_ROLES),
        f"{person}.{other}",
        f"{person[0]}.{other}",
        f"{person}{rng.randrange(100)}",
        _word(rng),
    )
    return rng.choice(some)


def _path(rng: random.Random) -> str:
    return rng.choice(
        ("", "", f"/{_word(rng)}", f"/{_word(rng)}/{rng.randrange(100)}", f"/{_word(rng)}?q={_word(rng)}")
    )
