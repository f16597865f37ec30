"""Why a server ended, or does not answer, in one sentence: from its exit code, its last words and the disk."""

import re
import signal
from collections.abc import Sequence
from pathlib import Path
from typing import Final

import psutil

from memsluice.deployment.space import Room

TAIL_BYTES: Final = 64 * 1024
WORDS_CHARS_MAX: Final = 300
OUT_OF_ROOM: Final = "out of disk space"
_NO_ROOM = re.compile(rb"no space left on device|not enough space|enospc|disk quota exceeded|disk is full", re.I)
_PORT = re.compile(rb"address already in use|failed to bind", re.I)
_MEMORY = re.compile(rb"outofmemoryerror|out of memory|cannot allocate memory", re.I)
_LOUD = re.compile(rb"\b(fatal|error|panic|exception)\b", re.I)


def last_words(log: Path, since: int = 0) -> bytes:
    """Return the end of a log from a byte offset on, at most TAIL_BYTES; what cannot be read is empty."""
    try:
        with log.open("rb") as file:
            size = file.seek(0, 2)
            file.seek(max(min(since, size), size - TAIL_BYTES))
            return file.read()
    except OSError:
        return b""


def why_ended(code: int, words: bytes, room: Room | None) -> str:
    """Return why a process ended. ``code`` is negative for a signal; ``room`` is the disk's, just after the end."""
    if _NO_ROOM.search(words) or (code != 0 and room is not None and room.too_little):
        left = f", {room}" if room is not None else ""
        return f"{OUT_OF_ROOM} ({_code(code)}{left})"
    if _PORT.search(words):
        return f"a port that it needs is taken by another process ({_code(code)}): {_line(words, _PORT)}"
    if _MEMORY.search(words):
        return f"out of memory ({_code(code)}): {_line(words, _MEMORY)}"
    if code == -signal.SIGKILL:
        return f"{_code(code)}: by somebody, or by the kernel, for want of memory"
    if code < 0:
        return _code(code)
    said = _line(words, _LOUD)
    return f"{_code(code)}{f': {said}' if said else ''}"


def _code(code: int) -> str:
    if code >= 0:
        return f"exit code {code}"
    try:
        return f"killed by signal {-code}, {signal.Signals(-code).name}"
    except ValueError:
        return f"killed by signal {-code}"


def _line(words: bytes, pattern: "re.Pattern[bytes]") -> str:
    """Return the last line that a pattern is found in, else the last one of all."""
    lines = [line.strip() for line in words.splitlines() if line.strip()]
    chosen: Sequence[bytes] = [line for line in lines if pattern.search(line)] or lines
    return chosen[-1][:WORDS_CHARS_MAX].decode("utf-8", "replace") if chosen else ""


def why_silent(process: psutil.Process) -> str:
    """Return why a process that lives may not answer."""
    try:
        if process.status() == psutil.STATUS_STOPPED:
            return f"its process lives and is stopped by a signal: kill -CONT {process.pid} lets it go on"
    except psutil.Error:
        pass
    return "its process lives and does not answer"
