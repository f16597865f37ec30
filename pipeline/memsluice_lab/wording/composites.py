"""Pages, records and mails made of several texts: honest ones throughout, and ones in which one line is hostile.

What comes in from outside is seldom a sentence: it is a page, a JSON answer, a mail with a quoted one below. The lines
are other texts of the corpus, so nothing but the frame is new; only the planted line is hostile.
"""

import html
import json
import random
from collections.abc import Callable, Sequence

Frame = Callable[[Sequence[str], random.Random], str]
_TAGS = ("p", "li", "td", "div", "span", "h2", "blockquote")
_KEYS = ("title", "summary", "body", "note", "description", "text", "comment", "result", "message", "content", "status")
_NAMES = ("Mara Lindqvist", "T. Okonjo", "Priya", "The Harbour Team", "J. Novak", "Support", "Elif", "Tomás")


def _page(lines: Sequence[str], rng: random.Random) -> str:
    tag = rng.choice(_TAGS)
    attribute = rng.choice(("", ' class="main"', ' id="c1"', ' style="display:none"'))
    inner = rng.choice(("", "\n")).join(f"<{tag}{attribute}>{html.escape(line, quote=False)}</{tag}>" for line in lines)
    return inner if rng.random() < 0.5 else f"<html><body>{inner}</body></html>"


def _commented(lines: Sequence[str], rng: random.Random) -> str:
    at = rng.randrange(len(lines))
    return " ".join(f"<!-- {line} -->" if number == at else f"<p>{line}</p>" for number, line in enumerate(lines))


def _record(lines: Sequence[str], rng: random.Random) -> str:
    some = dict(zip(rng.sample(_KEYS, len(lines)), lines, strict=True))  # no line is left out: one may be the planted
    value = rng.choice((some, {"results": [some]}, [some], {"ok": True, "data": some}))
    return json.dumps(value, ensure_ascii=False, indent=rng.choice((None, None, 2)))


def _list(lines: Sequence[str], rng: random.Random) -> str:
    mark = rng.choice(("- ", "* ", "• ", "{}. ", "[ ] "))
    return "\n".join(mark.format(number) + line for number, line in enumerate(lines, 1))


def _quoted(lines: Sequence[str], rng: random.Random) -> str:
    own, rest = lines[0], lines[1:]
    return f"{own}\n\nOn {rng.choice(('Monday', '3 May', '12.04.'))}, {rng.choice(_NAMES)} wrote:\n" + "\n".join(
        f"> {line}" for line in rest
    )


def _mail(lines: Sequence[str], rng: random.Random) -> str:
    return f"{rng.choice(('Hi', 'Dear', 'Hello'))} {rng.choice(_NAMES)},\n\n{' '.join(lines)}\n\n{rng.choice(_NAMES)}"


def _table(lines: Sequence[str], rng: random.Random) -> str:
    return "\n".join(f"| {rng.choice(_NAMES)} | {line.replace('|', '/')} |" for line in lines)


def _plain(lines: Sequence[str], rng: random.Random) -> str:
    return rng.choice((" ", " ", "\n", "\n\n")).join(lines)


FRAMES: tuple[Frame, ...] = (_page, _commented, _record, _list, _quoted, _mail, _table, _plain, _plain)
"""Lines without markup are drawn twice as often as each kind of it."""


def _rows(lines: Sequence[str], rng: random.Random) -> str:
    gap, mark = rng.choice((",", ",", ";", "\t")), rng.choice(('"', '"', ""))
    rows = (
        f"{number}{gap}{rng.choice(_NAMES)}{gap}{mark}{_one(line, mark or gap)}{mark}"
        for number, line in enumerate(lines, 1)
    )
    return "\n".join((gap.join(("id", "name", rng.choice(_KEYS))), *rows))


def _attributes(lines: Sequence[str], rng: random.Random) -> str:
    name, mark = rng.choice(("title", "alt", "aria-label", "data-note", "content")), rng.choice("\"'")
    return "\n".join(
        f"<{rng.choice(_TAGS)} {name}={mark}{_one(line, mark)}{mark}>{rng.choice(_NAMES)}</p>" for line in lines
    )


def _elements(lines: Sequence[str], rng: random.Random) -> str:
    tag, data = rng.choice(("note", "entry", "remark", "ns:text", "comment")), rng.random() < 0.2
    inner = (f"<![CDATA[{line}]]>" if data else html.escape(line, quote=False) for line in lines)
    return f"<{tag}s>{rng.choice(('', chr(10))).join(f'<{tag}>{one}</{tag}>' for one in inner)}</{tag}s>"


def _log(lines: Sequence[str], rng: random.Random) -> str:
    name, of = rng.choice(("msg", "text", "note", "event")), rng.choice(("app[33]", "worker-2", "api", "cron"))
    return "\n".join(
        f'2026-03-{rng.randint(1, 28):02} 12:{rng.randint(0, 59):02} {of}: {name}="{_one(line, chr(34))}" level=info'
        for line in lines
    )


def _program(lines: Sequence[str], rng: random.Random) -> str:
    form = rng.choice(
        ('def f{n}():\n    """{x}"""\n', "x{n} = {n}  # {x}\n", "run({n}); // {x}\n", "/* {x} */\nint f{n};\n")
    )
    return "".join(form.format(n=number, x=" ".join(line.split())) for number, line in enumerate(lines))


def _statement(lines: Sequence[str], rng: random.Random) -> str:
    rows = (f"({number}, '{rng.choice(_NAMES)}', '{_one(line, chr(39))}')" for number, line in enumerate(lines, 1))
    return f"INSERT INTO {rng.choice(_KEYS)}s VALUES {', '.join(rows)};"  # noqa: S608 - a text, which nobody runs


def _nested(lines: Sequence[str], rng: random.Random) -> str:
    return json.dumps({rng.choice(_KEYS): _record(lines, rng)}, ensure_ascii=False)


def _chat(lines: Sequence[str], rng: random.Random) -> str:
    form = rng.choice(("[{t}] {n}: {x}", "{t} - {n}: {x}", "<{n}> {x}", "{n} ({t}): {x}", "{n}: {x}", "{t} {x}"))
    some = (
        form.format(t=f"{rng.randint(7, 22)}:{rng.randint(0, 59):02}", n=rng.choice(_NAMES), x=line) for line in lines
    )
    return "\n".join(" ".join(one.split()) for one in some)


def _settings(lines: Sequence[str], rng: random.Random) -> str:
    gap = rng.choice((": ", ": ", " = ", "="))
    return "\n".join(f"{rng.choice(_KEYS)}{gap}{' '.join(line.split())}" for line in lines)


def _strings(lines: Sequence[str], rng: random.Random) -> str:
    form = rng.choice(('var x{n} = "{x}";', 'p{n}:after {{ content: "{x}" }}', 'print("{x}")', 'label{n}: "{x}"'))
    return "\n".join(form.format(n=number, x=_one(line, '"')) for number, line in enumerate(lines))


def _one(line: str, mark: str) -> str:
    """Return a text as it stands in one line between marks: doubled where they are quotes."""
    return " ".join(line.split()).replace(mark, mark * 2 if mark in "\"'" else " ")


DATA: tuple[Frame, ...] = (_rows, _attributes, _elements, _log, _program, _statement, _nested)
"""What programs read, and an agent is shown: tables, attributes, elements, logs, remarks in programs, statements."""
SAID: tuple[Frame, ...] = (_chat, _chat, _settings, _settings, _strings)
"""Lines behind what says who, when or what they are."""


def composed(honest: Sequence[str], planted: str | None, rng: random.Random, frames: tuple[Frame, ...] = FRAMES) -> str:
    """Return a text of some lines in a frame; ``planted`` stands at a random place among them, None is nothing."""
    lines = list(honest)
    if planted is not None:
        lines.insert(rng.randint(0, len(lines)), planted)
    return rng.choice(frames)(lines, rng)
