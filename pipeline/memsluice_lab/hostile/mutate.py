"""What is done to a valid input: bytes damaged, a JSON node replaced, a text of YAML twisted. Everything by a seed."""

import json
import random
import re
from collections.abc import Callable
from typing import Any

import orjson

JSON_DEPTH = 1_400
"""Deeper than any parser here follows."""
DEEP = "deep-"
_DEEP = re.compile(rb'"deep-(\[\]|\{\})([0-9]+)"')
REPEATS_MAX = 4_000
PIECES = (
    b"{", b"[", b"}", b"]", b'"', b"\\ud800", b"\\u0000", b"null", b"1e999", b"-1e999", b"NaN", b"Infinity", b"\0",
    b'"id":1,', b"\xff\xfe", b"\xef\xbb\xbf", b"\xed\xa0\x80", b"\xf4\x90\x80\x80", b"9" * 400, b",", b":", b"\\",
    b"-0", b"\r\n", b"<<:", b"&a ", b"*a", b"!!", b"--- ", b"%", b"=", b"\xe2\x80\xae",
)  # fmt: skip
TEXTS = (
    "", " ", "*", "a\nb", "\0", "\u202e", "\ud800", "é" * 200, "x" * 70_000, "..", "/", "%s%n", "{0}", "1e999", "true",
    "0" * 36, "=" * 8, "AA==", "AA=", "A", "-_-_", "urn:x", "2026-02-30T00:00:00Z", "0001-01-01T00:00:00+23:59",
    "9999-12-31T23:59:59.999999999-23:59", "2026-05-04T03:02:01Z", "[" * JSON_DEPTH, '{"a":' * 300, "﷽" * 50,
)  # fmt: skip
NUMBERS = (0, -1, 1, 6, 2**31, 2**53 + 1, 2**63 - 1, 2**63, 2**64 - 1, -(2**63), 1.5, -0.0, 1e308, 5e-324)
YAML_LINES = (
    "? [a, b]\n: c", "<<: *none", "<<: {a: 1}", "<<: [1, 2]", "a: &a [*a]", "a: &b {b: *b}", "- a\n- b",
    "a: !!timestamp 2001-99-99", "a: 2001-13-45", "a: 2001-01-01 99:99:99", "a: !!int 0x", "a: !!int ''",
    "a: !!float x", "a: !!binary '*'", "a: !!set [1]", "a: !!omap {a: 1}", "a: !!pairs [1]",
    "a: !!python/name:os.system",
    "a: !!python/object/apply:os.system ['true']", "a: 0o9", "a: 1_000_000", "a: 190:20:30", "a: .inf", "a: .nan",
    "a: ~", "? : :", "\ta: b", "a: 'x", "%YAML 9.9\n---\na: b", "---\n---", "...", "a: |\n  x", "{a: b, a: c}",
    "null: 1", "true: 1", "1: 1", "1.5: 1", "2001-01-01: 1", "a: !<x> y", "=: 1", "a: =", "a: 0b2",
)  # fmt: skip
LEVELS = 12


def damaged(chance: random.Random, data: bytes) -> bytes:
    """Return bytes with one to four places damaged: a byte changed, some cut out, put in, repeated or swapped."""
    found = bytearray(data)
    for _ in range(chance.choice((1, 1, 1, 2, 4))):
        at = chance.randrange(len(found) + 1)
        match chance.randrange(7):
            case 0:
                found[at : at + 1] = bytes([chance.randrange(256)])
            case 1:
                del found[at : at + chance.randint(1, 40)]
            case 2:
                found[at:at] = chance.choice(PIECES)
            case 3:
                found[at:at] = chance.randbytes(chance.randint(1, 24))
            case 4:
                found[at:at] = found[: chance.randint(0, 300)]
            case 5:
                del found[at:]
            case _:
                found[at : at + 1] = bytes([found[at] ^ 1 << chance.randrange(8)]) if at < len(found) else b""
    return bytes(found)


def _deep(chance: random.Random) -> str:
    """Return what stands for a value of much depth, which :func:`_dug` writes: no JSON writer here goes so deep."""
    return f"{DEEP}{chance.choice(('[]', '{}'))}{chance.choice((3, 20, 200, 900, 1_000, 1_023, 1_100))}"


def _dug(data: bytes) -> bytes:
    def written_out(found: re.Match[bytes]) -> bytes:
        depth = int(found[2])
        return b"[" * depth + b"]" * depth if found[1] == b"[]" else b'{"a":' * depth + b"1" + b"}" * depth

    return _DEEP.sub(written_out, data)


def odd(chance: random.Random) -> Any:
    """Return a JSON value that hardly any field expects."""
    match chance.randrange(9):
        case 0:
            return chance.choice((None, True, False))
        case 1 | 2:
            return chance.choice(NUMBERS)
        case 3 | 4:
            return chance.choice(TEXTS)
        case 5:
            return _deep(chance)
        case 6:
            return [chance.choice((*NUMBERS, *TEXTS[:8], None))] * chance.choice((0, 1, 3, 70, 300))
        case 7:
            return {chance.choice((*TEXTS[:12], "a", "tenant", "payload")): chance.choice(NUMBERS) for _ in range(3)}
        case _:
            return chance.choice(TEXTS[:8]) * chance.choice((1, 2, 300))


def _places(value: Any, path: tuple[Any, ...] = ()) -> list[tuple[Any, ...]]:
    found = [path]
    if isinstance(value, dict):
        for name, inner in value.items():
            found += _places(inner, (*path, name))
    elif isinstance(value, list):
        for number, inner in enumerate(value[:8]):
            found += _places(inner, (*path, number))
    return found


def twisted(chance: random.Random, document: Any) -> Any:
    """Return a JSON document with one to three nodes replaced, renamed, swapped, removed or added."""
    for _ in range(chance.choice((1, 1, 1, 2, 3))):
        document = _twisted_once(chance, document)
    return document


def _twisted_once(chance: random.Random, document: Any) -> Any:
    path = chance.choice(_places(document))
    if not path:
        return odd(chance) if chance.random() < 0.3 else document
    *way, last = path
    document = top = _copied(document)
    for step in way:
        document = document[step]
    match chance.randrange(6):
        case 0 | 1 | 2:
            document[last] = odd(chance)
        case 3:
            del document[last]
        case 4 if isinstance(document, dict):
            document[chance.choice((f"{last}x", last.upper(), "", "extra"))] = document.pop(last)
        case 4:
            document.extend(document[:] * 3)
        case _:
            others = list(document) if isinstance(document, dict) else list(range(len(document)))
            other = chance.choice(others)
            document[last], document[other] = document[other], document[last]
    return top


def _copied(value: Any) -> Any:
    if isinstance(value, dict):
        return {name: _copied(inner) for name, inner in value.items()}
    return [_copied(inner) for inner in value] if isinstance(value, list) else value


def written(chance: random.Random, document: Any) -> bytes:
    """Return a document as JSON bytes, as a sender would write it who keeps to no rule: keys may come twice."""
    text = json.dumps(document, ensure_ascii=chance.random() < 0.5)
    data = _dug(text.encode("utf-8", "surrogatepass"))
    if chance.random() < 0.05:
        data = data.replace(b"{", b'{"id":1,', 1)
    return data


def canonical_or(chance: random.Random, document: Any) -> bytes:
    """Return what the gate itself would write of a document, or, where it could not, what a careless sender would."""
    try:
        return _dug(orjson.dumps(document, option=orjson.OPT_SORT_KEYS))
    except (TypeError, ValueError):
        return written(chance, document)


def json_bytes(chance: random.Random, data: bytes) -> bytes:
    """Return a JSON document damaged as bytes, or twisted as a document."""
    return damaged(chance, data) if chance.random() < 0.35 else written(chance, twisted(chance, orjson.loads(data)))


def bomb(chance: random.Random, name: str = "a") -> str:
    """Return YAML of a few lines whose aliases, followed, come to nine to the twelfth power of values."""
    lines = [f"x0: &x0 [{', '.join('y' * 9)}]"]
    for level in range(1, chance.randint(3, LEVELS)):
        lines.append(f"x{level}: &x{level} [{', '.join([f'*x{level - 1}'] * 9)}]")
    return "\n".join([*lines, f"{name}: *x{len(lines) - 1}"])


def yaml_bytes(chance: random.Random, data: bytes) -> bytes:
    """Return a text of YAML damaged, with a line put in, a value replaced, nested deep, or with a bomb of aliases."""
    lines = data.decode("utf-8", "replace").split("\n")
    at = chance.randrange(len(lines))
    name = lines[at].partition(":")[0]
    match chance.randrange(7):
        case 0 | 1:
            return damaged(chance, data)
        case 2:
            lines.insert(at, chance.choice(YAML_LINES))
        case 3:
            lines[at] = f"{name}: {chance.choice(YAML_LINES).partition(' ')[2].split(chr(10))[0]}"
        case 4:
            depth = chance.choice((5, 18, 60, 900))
            lines[at] = f"{name}: {'[' * depth}{']' * depth}"
        case 5:
            lines[at:at] = bomb(chance, name.strip(" -") or "a").split("\n")
        case _:
            lines[at] = f"{name}: {json.dumps(chance.choice((odd(chance), chance.choice(NUMBERS))))[:3_000]}"
    return "\n".join(lines).encode("utf-8", "surrogatepass")


def content(chance: random.Random, pieces: tuple[str, ...], bytes_max: int) -> str:
    """Return a text of few pieces repeated often: what makes a pattern that backtracks take for ever."""
    chosen = [chance.choice(pieces) for _ in range(chance.randint(1, 3))]
    text = "".join(chosen) * chance.randint(1, REPEATS_MAX) + chance.choice(pieces)
    return text.encode("utf-8", "replace")[: chance.choice((300, 2_000, bytes_max))].decode("utf-8", "ignore")


Mutation = Callable[[random.Random, bytes], bytes]
