#!/usr/bin/env python3
"""Prints the layers of the product, lowest first, and fails on an import that points back up, or on a circle of files.

``scripts/layers.py [FOLDER]``: exit code 0 where every import points down, 1 where one does not. A part is a folder or
a file directly below ``memsluice``, or one of the folders that are listed with their own place (``gate.state``).
"""

import ast
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

LAYERS: tuple[tuple[str, ...], ...] = (
    ("errors", "clock", "escaping", "deprecations"),
    ("extras", "log"),
    ("events",),
    ("envelope",),
    ("topics",),
    ("deployment",),
    ("keystore",),
    ("encoder",),
    ("client",),
    ("gate.unicode", "gate.reasons", "gate.policy", "gate.detectors.numeric.compiled"),
    ("gate.state", "gate.sensitive"),
    ("gate.checks",),
    ("gate.detectors",),
    ("gate.decision",),
    ("gate.commands",),
    ("gate",),
    ("stores",),
    ("stages",),
    ("readers",),
    ("recall",),
    ("runtimes",),
    ("telemetry",),
    ("http_service", "memory"),
    ("recall_service", "ingest_service"),
    ("adapters",),
    ("devstack",),
    ("operations",),
    ("console", "terminal"),
    ("cli",),
    ("memsluice_lab",),
)
"""Lowest first. Parts of one row do not import one another; a part imports those of the rows above it in this list."""
CORE = frozenset({"gate", "envelope", "errors", "escaping", "events"})
"""All that the gate may import: it decides, and no disk, network or clock is within its reach."""
PACKAGE = "memsluice"


def modules(folder: Path) -> dict[str, Path]:
    """Return every module below ``folder`` by its dotted name."""
    found = {}
    for path in sorted(folder.rglob("*.py")):
        name = ".".join(path.relative_to(folder).with_suffix("").parts).removesuffix(".__init__")
        if name.split(".")[0] in (PACKAGE, "memsluice_lab"):
            found[name] = path
    return found


def part_of(module: str) -> str:
    """Return the part that a module belongs to: the longest listed name that it begins with."""
    name = module.removeprefix(f"{PACKAGE}.")
    listed = [part for row in LAYERS for part in row if name == part or name.startswith(f"{part}.")]
    return max(listed, key=len) if listed else name.split(".")[0]


def exports(folder: Path) -> dict[str, str]:
    """Return the modules that the package's own file imports when a name is asked for: module by exported name."""
    tree = ast.parse((folder / PACKAGE / "__init__.py").read_text(encoding="utf-8"))
    return {
        alias.asname or alias.name: node.module
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and node.module and node.module != PACKAGE
        for alias in node.names
    }


def imports(module: str, path: Path, known: dict[str, Path], exported: dict[str, str]) -> Iterator[tuple[int, str]]:
    """Yield line and module of every import of the product's own modules, wherever and however it stands in the file.

    A name that the package exports counts as an import of the module which has it.
    """
    folder = module.split(".") if path.name == "__init__.py" else module.split(".")[:-1]
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names = [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            within = folder[: len(folder) - node.level + 1] if node.level else []
            base = ".".join([*within, *([node.module] if node.module else [])])
            names = [
                exported.get(alias.name, f"{base}.{alias.name}") if base == PACKAGE else f"{base}.{alias.name}"
                for alias in node.names
            ]
        elif isinstance(node, ast.Call) and _imports_by_name(node):
            names = [arg.value for arg in node.args[:1] if isinstance(arg, ast.Constant) and isinstance(arg.value, str)]
        else:
            continue
        for name in names:
            inner = name
            while inner and inner not in known:
                inner = inner.rpartition(".")[0]
            if inner:
                yield node.lineno, inner


def _imports_by_name(call: ast.Call) -> bool:
    return ast.unparse(call.func).rpartition(".")[2] in ("import_module", "__import__")


def problems(folder: Path) -> list[str]:
    """Return a line for every part without a place, every import that points back, and every circle of files."""
    known, exported = modules(folder), exports(folder)
    rank = {part: place for place, row in enumerate(LAYERS) for part in row}
    found, arrows = [], defaultdict(set)
    for module, path in known.items():
        if module == PACKAGE:
            continue  # the package's own file names what it exports; it imports when asked
        here = part_of(module)
        if here not in rank:
            found.append(f"{module} has no place among the layers: give {here} one in scripts/layers.py")
            continue
        for line, name in imports(module, path, known, exported):
            there = part_of(name)
            if name not in (PACKAGE, module):
                arrows[module].add(name)
            if name == PACKAGE and here != "memsluice_lab":
                found.append(f"{path.relative_to(folder)}:{line} {here} imports {PACKAGE} itself: name the module")
            elif name != PACKAGE and there != here and rank.get(there, 0) >= rank[here]:
                found.append(f"{path.relative_to(folder)}:{line} {here} imports {name}, which lies above it")
            elif here.split(".")[0] == "gate" and there.split(".")[0] not in CORE:
                found.append(f"{path.relative_to(folder)}:{line} {here} imports {name}, which is no part of the core")
    return found + circles(arrows)


def circles(arrows: dict[str, set[str]]) -> list[str]:
    """Return a line for every group of files that import one another in a circle (Tarjan's components)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found = []

    def visit(node: str) -> None:
        index[node] = low[node] = len(index)
        stack.append(node)
        for after in sorted(arrows.get(node, ())):
            if after not in index:
                visit(after)
                low[node] = min(low[node], low[after])
            elif after in stack:
                low[node] = min(low[node], index[after])
        if low[node] == index[node]:
            group = stack[stack.index(node) :]
            del stack[stack.index(node) :]
            if len(group) > 1:
                found.append("circle of imports: " + ", ".join(sorted(group)))

    for node in sorted(arrows):
        if node not in index:
            visit(node)
    return found


def main(folder: Path) -> int:
    """Print the layers and what is wrong with them; return the exit code."""
    sizes: dict[str, int] = defaultdict(int)
    for module in modules(folder):
        sizes[part_of(module)] += 1
    for row in LAYERS:
        print("  ".join(f"{part} ({sizes[part]})" for part in row))
    wrong = problems(folder)
    print(*(f"!! {line}" for line in wrong), f"{len(wrong)} problems", sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).resolve().parent.parent / "pipeline"))
