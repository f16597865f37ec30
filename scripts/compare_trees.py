"""Says whether this tree sends and stores the very bytes that another revision of it does, on labelled streams.

``scripts/compare-trees REVISION [STREAMS]``: every stream of the folder goes through the stages of both trees, with the
real encoder; then this tree carries on from what the other had written in the middle of each. STREAMS left out: they
are built from the real records (``MEMSLUICE_DATA``, see docs/figures.md). Ends with 1 where any byte differs.
"""

import os
import sqlite3
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import closing, contextmanager
from pathlib import Path

HERE = Path(__file__).resolve().parent.parent
PLAYER = Path(__file__).with_name("play_tree.py")
PACKAGES = ("memsluice", "memsluice_lab")
QUERIES = {
    "record": "SELECT topic, part, offs, key, value, headers, append_ms FROM records",
    "row": "SELECT part, key, value FROM state_rows",
    "position": "SELECT stage, topic, part, next FROM positions",
}
"""What is compared of a local log, and how many of the first columns name it."""
NAMES = {"record": 3, "row": 2, "position": 3}
TOLD_MAX = 3
EXCERPT_BYTES = 60
Found = dict[tuple[object, ...], tuple[object, ...]]


@contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Path]:
    """Yield a worktree of a revision, which is gone afterwards."""
    tree = folder / "tree"
    _git("worktree", "add", "--detach", "--quiet", str(tree), revision)
    try:
        yield tree
    finally:
        _git("worktree", "remove", "--force", str(tree))


def _git(*words: str) -> None:
    subprocess.run(["git", "-C", str(HERE), *words], check=True)


def built(folder: Path) -> Path:
    """Return a folder with the streams of the real records."""
    data = Path(os.environ.get("MEMSLUICE_DATA") or HERE.parent / "shared")
    program, out = data / "bench" / "build_streams.py", folder / "streams"
    if not program.is_file():
        sys.exit("name a folder of streams, or by MEMSLUICE_DATA one with data/ and bench/build_streams.py")
    out.mkdir()
    subprocess.run([sys.executable, program, data / "data", out], check=True, stdout=subprocess.DEVNULL)
    return out


def play(tree: Path, out: Path, streams: Sequence[Path], halves: Path | None = None) -> None:
    """Have a tree play streams; it writes ``half.db`` and ``whole.db``, and ``carried.db`` from another's halves."""
    out.mkdir()
    places = [*tree.iterdir(), tree]
    roots = [str(place) for place in places if any((place / name / "__init__.py").is_file() for name in PACKAGES)]
    variables = {**os.environ, "PYTHONPATH": os.pathsep.join(roots)}
    more = [] if halves is None else ["--halves", str(halves)]
    command = [sys.executable, str(PLAYER), str(out), *more, *map(str, streams)]
    subprocess.run(command, check=True, env=variables, cwd=tree)


def found_in(path: Path) -> Iterator[tuple[str, Found]]:
    """Yield what a local log holds: its records with keys, headers and times, its state rows, its positions."""
    with closing(sqlite3.connect(f"file:{path}?mode=ro", uri=True)) as log:
        for what, query in QUERIES.items():
            yield what, {row[: NAMES[what]]: row[NAMES[what] :] for row in log.execute(query)}


def differences(one: Path, other: Path) -> tuple[dict[str, int], list[str]]:
    """Return how much was compared of each kind, and what differs between two logs."""
    counts, told = dict[str, int](), list[str]()
    for (what, was), (_, now) in zip(found_in(one), found_in(other), strict=True):
        counts[what] = len({*was, *now})
        changed = sorted(name for name in {*was, *now} if was.get(name) != now.get(name))
        told += [f"{what} {name}: {_how(was.get(name), now.get(name))}" for name in changed]
    return counts, told


def _how(was: tuple[object, ...] | None, now: tuple[object, ...] | None) -> str:
    if was is None or now is None:
        return "is new" if was is None else "is gone"
    one, other = next((one, other) for one, other in zip(was, now, strict=True) if one != other)
    if not (isinstance(one, bytes) and isinstance(other, bytes)):
        return f"was {one!r}, is {other!r}"
    at = next((at for at, (here, there) in enumerate(zip(one, other, strict=False)) if here != there), 0)
    at = max(at - EXCERPT_BYTES // 2, 0)
    return f"was … {one[at : at + EXCERPT_BYTES]!r}, is … {other[at : at + EXCERPT_BYTES]!r}"


def compared(name: str, old: Path, new: Path) -> bool:
    """Say how one stream went in both trees; return whether nothing differs."""
    counts, told = differences(old / name / "whole.db", new / name / "whole.db")
    _, after = differences(old / name / "whole.db", new / name / "carried.db")
    recovered = "recovered the same" if not after else f"RECOVERED WITH {len(after)} DIFFERENCES"
    sys.stdout.write(
        f"{name}: {counts['record']} records, {counts['row']} rows, {len(told)} differences, {recovered}\n"
        + "".join(f"  {line}\n" for line in told[:TOLD_MAX])
        + "".join(f"  recovered: {line}\n" for line in after[:TOLD_MAX])
    )
    return not told and not after


def main(revision: str, streams: str | None = None) -> int:
    """Compare; return the exit status."""
    with (
        tempfile.TemporaryDirectory(prefix="memsluice-compare-") as scratch,
        checked_out(revision, Path(scratch)) as tree,
    ):
        folder = Path(scratch)
        paths = sorted((built(folder) if streams is None else Path(streams).resolve()).glob("*.jsonl"))
        if not paths:
            sys.stderr.write(f"there is no <stream>.jsonl in {streams}\n")
            return 2
        play(tree, folder / "old", paths)
        play(HERE, folder / "new", paths, folder / "old")
        same = [compared(path.stem, folder / "old", folder / "new") for path in paths]
    return 0 if all(same) else 1


if __name__ == "__main__":
    if len(sys.argv) not in (2, 3):
        sys.exit("usage: scripts/compare-trees REVISION [STREAMS]")
    sys.exit(main(*sys.argv[1:]))
