"""The files of Claude's memory tool on a shelf: a file is a document, and each change of one is one signed write.

The answers are those that the tool's documentation asks for, which Claude was trained on.
"""

from collections.abc import Sequence

from anthropic.lib.tools import ToolError

from memsluice.memory.documents import Document, Path
from memsluice.memory.shelf import Shelf
from memsluice.memory.telling import NO_ENTRY, not_remembered

ROOT = "memories"
LINES_MAX = 999_999
NUMBER_WIDTH = 6
DEPTH = 2
TEXT = "text"


class Files:
    """The files of one session's memory below ``/memories``. Each method returns an answer, or raises ToolError;
    ProducerError where the log did not take something."""

    def __init__(self, shelf: Shelf) -> None:
        self._shelf = shelf

    def view(self, path: str, view_range: Sequence[int] | None) -> str:
        """Return a file with its lines numbered, or what lies two levels deep in a folder."""
        place = _place(path)
        text = self._text(place)
        if text is None:
            return self._listed(path, place)
        lines = text.split("\n")
        if len(lines) > LINES_MAX:
            raise ToolError(f"File {path} exceeds maximum line limit of 999,999 lines.")
        first, last = view_range if view_range and len(view_range) == 2 else (1, -1)
        first = max(first, 1)
        shown = lines[first - 1 : len(lines) if last == -1 else last]
        return f"Here's the content of {path} with line numbers:\n" + _numbered(shown, first)

    def create(self, path: str, text: str) -> str:
        """Write a file that is not there."""
        place = _file(path)
        self._free(place, f"Error: File {path} already exists")
        self._put({place: text})
        return f"File created successfully at: {path}"

    def str_replace(self, path: str, old: str, new: str) -> str:
        """Replace a text that stands in a file once."""
        place, text = self._there(path)
        starts = _starts(text, old)
        if not starts:
            raise ToolError(f"No replacement was performed, old_str `{old}` did not appear verbatim in {path}.")
        if len(starts) > 1:
            where = ", ".join(str(text.count("\n", 0, start) + 1) for start in starts)
            raise ToolError(
                f"No replacement was performed. Multiple occurrences of old_str `{old}` in lines: {where}. "
                "Please ensure it is unique"
            )
        changed = text[: starts[0]] + new + text[starts[0] + len(old) :]
        self._put({place: changed})
        at = text.count("\n", 0, starts[0])
        first = max(0, at - 2)
        snippet = _numbered(changed.split("\n")[first : at + 3], first + 1)
        return (
            f"The memory file has been edited. Here is the snippet showing the change (with line numbers):\n{snippet}"
        )

    def insert(self, path: str, line: int, text: str) -> str:
        """Insert a text behind a line; 0 is before the first."""
        place, before = self._there(path)
        lines = before.split("\n")
        if lines[-1] == "":
            lines.pop()
        if not 0 <= line <= len(lines):
            raise ToolError(
                f"Error: Invalid `insert_line` parameter: {line}. It should be within the range [0, {len(lines)}]."
            )
        lines.insert(line, text.rstrip("\n"))
        self._put({place: "\n".join(lines) + "\n"})
        return f"The file {path} has been edited."

    def delete(self, path: str) -> str:
        """Delete a file, or all files of a folder."""
        place = _file(path, "Cannot delete the /memories directory itself")
        some = self._tree(path, place)
        self._put(dict.fromkeys(some))
        return f"Successfully deleted {path}"

    def rename(self, old: str, new: str) -> str:
        """Move a file, or all files of a folder: they are written anew, then the old ones are deleted."""
        place = _file(old, "Cannot rename the /memories directory itself")
        target = _file(new)
        some = self._tree(old, place)
        self._free(target, f"Error: The destination {new} already exists")
        self._put({(*target, *one[len(place) :]): text for one, text in some.items()})
        self._put(dict.fromkeys(some))
        return f"Successfully renamed {old} to {new}"

    def _text(self, place: Path) -> str | None:
        name = (place[:-1], place[-1]) if place else ((), "")
        found = self._shelf.get([name]).get(name) if place else None
        return None if found is None else str((found.value or {}).get(TEXT, ""))

    def _free(self, place: Path, why: str) -> None:
        """Raise ToolError where a file or a folder lies, or where what should be a folder is a file."""
        above = [(place[:depth], place[depth]) for depth in range(len(place))]
        found = self._shelf.get(above)
        if above[-1] in found or self._below(place):
            raise ToolError(why)
        for path, key in found:
            raise ToolError(f"Error: /{'/'.join((ROOT, *path, key))} is a file")

    def _there(self, path: str) -> tuple[Path, str]:
        place = _file(path)
        text = self._text(place)
        if text is None:
            raise ToolError(f"Error: The path {path} does not exist. Please provide a valid path.")
        return place, text

    def _below(self, place: Path) -> dict[Path, str]:
        """Return the files of a folder, by their places."""
        some = self._shelf.below(place)
        return {(*one.path, one.key): str((one.value or {}).get(TEXT, "")) for one in some}

    def _tree(self, path: str, place: Path) -> dict[Path, str]:
        text = self._text(place)
        some = self._below(place) if text is None else {place: text}
        if not some:
            raise ToolError(f"Error: The path {path} does not exist")
        return some

    def _listed(self, path: str, place: Path) -> str:
        found = self._below(place)
        if place and not found:
            raise ToolError(f"The path {path} does not exist. Please provide a valid path.")
        sizes: dict[str, int] = {}
        for one, text in found.items():
            inner, size = one[len(place) :], len(text.encode())
            for depth in range(1, min(len(inner), DEPTH) + 1):
                name = "/".join(inner[:depth]) + ("/" if depth < len(inner) else "")
                sizes[name] = sizes.get(name, 0) + size
        whole = sum(len(text.encode()) for text in found.values())
        lines = [
            f"{_size(whole)}\t{path}",
            *(f"{_size(sizes[name])}\t{path.rstrip('/')}/{name}" for name in sorted(sizes)),
        ]
        head = f"Here're the files and directories up to 2 levels deep in {path}, excluding hidden items:"
        return "\n".join([head, *lines])

    def _put(self, files: dict[Path, str] | dict[Path, None]) -> None:
        documents = [
            Document(place[:-1], place[-1], None if text is None else {TEXT: text}) for place, text in files.items()
        ]
        try:
            self._shelf.put(documents)
        except NO_ENTRY as error:
            raise ToolError(not_remembered(error)) from error


def _place(path: str) -> Path:
    """Return the parts of a path below /memories. Raises ToolError for one that lies elsewhere, or is hidden."""
    first, *parts = path.strip("/").split("/") if path.startswith("/") else ("", "")
    if first != ROOT or any(one in ("", ".", "..") or not one.isprintable() or "\\" in one for one in parts):
        raise ToolError(f"Error: Path must be below /memories, got: {path}")
    return tuple(parts)


def _file(path: str, why: str = "Error: /memories itself is a directory") -> Path:
    place = _place(path)
    if not place:
        raise ToolError(why)
    return place


def _starts(text: str, part: str) -> list[int]:
    starts, at = list[int](), text.find(part) if part else -1
    while at >= 0:
        starts.append(at)
        at = text.find(part, at + 1)
    return starts


def _numbered(lines: Sequence[str], first: int) -> str:
    return "\n".join(f"{number:>{NUMBER_WIDTH}}\t{line}" for number, line in enumerate(lines, first))


def _size(count: int) -> str:
    size, unit = float(count), "B"
    for larger in "KMG":
        if size < 1024:
            break
        size, unit = size / 1024, larger
    return f"{size:.1f}".removesuffix(".0") + unit
