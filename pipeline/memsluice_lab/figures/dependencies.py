"""What a figure was measured on: the digest of all code and data that its function can reach.

Two trees that differ in comments, docstrings, descriptions of pydantic's fields and layout have one digest. It needs no
history, so it survives a rebase.

A figure depends on the files that its module imports, directly or by way of others, wherever in a file an import
stands; on the data files beside them; and on the locked versions of the libraries. A file of the laboratory that runs
another program is taken to run every module whose dotted name it has as a string, unless it says better: ``DEPENDS``
in it is a tuple of module names, and of paths below the repository, that it needs beyond its imports.
"""

import ast
import json
import tomllib
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from hashlib import sha256
from pathlib import Path
from typing import Any

import yaml

from memsluice.errors import ConfigError
from memsluice_lab.figures.registry.figure import FIGURES_PACKAGE, Figure

TOP = Path(__file__).resolve().parents[3]
"""The checkout that this package lies in; only a checkout has figures."""
PACKAGES = ("memsluice", "memsluice_lab")
FRAME = frozenset(
    f"{FIGURES_PACKAGE}.{name}"
    for name in ("__main__", "dependencies", "measurements", "page", "provenance_page", "registry", "stale")
)
"""Modules and a package that ask for figures, keep and show them: a changed goal or wording changes no measurement."""
DECLARED = "DEPENDS"
BESIDE: dict[str, tuple[str, ...]] = {"memsluice.topics.spec": ("topics",)}
"""Data that lies apart from the module which reads it."""
NOT_DATA = frozenset({".py", ".md", ".toml", ".typed"})
LOCK = "uv.lock"
DIGEST_CHARS = 16


@dataclass(frozen=True, slots=True)
class Module:
    """A source file: what it says, what it imports, and what it declares to need."""

    path: Path
    digest: str
    imports: frozenset[str]
    lazily: dict[str, str]
    """Names that are imported when they are first asked for, with where they come from."""
    strings: frozenset[str]
    declared: tuple[str, ...] | None


@dataclass(slots=True)
class Tree:
    """The sources below ``top``, each read once."""

    top: Path
    _found: dict[str, Module | None] = field(default_factory=dict)
    _lock: str = ""

    def digest(self, figure: Figure) -> str:
        """Return the digest of a figure's code, data and libraries. Raises ConfigError outside a checkout."""
        if not (self.top / LOCK).exists():
            raise ConfigError(f"{self.top} is no checkout of the repository: there is no {LOCK}")
        if not self._lock:
            self._lock = _hash(json.dumps(locked(tomllib.loads((self.top / LOCK).read_text(encoding="utf-8")))))
        lines = [figure.where, self._lock]
        lines += [f"{path.relative_to(self.top)} {digest}" for path, digest in sorted(self.files(figure).items())]
        return _hash("\n".join(lines))[:DIGEST_CHARS]

    def files(self, figure: Figure) -> dict[Path, str]:
        """Return every file that a figure depends on, with its digest. Raises ConfigError for a module not there."""
        first = f"{FIGURES_PACKAGE}.{figure.where.partition(':')[0]}"
        if self.module(first) is None:
            raise ConfigError(f"{figure.name} names the module {first}, which does not exist")
        modules, paths = self._reached(first)
        found = {module.path: module.digest for module in modules.values()}
        found |= {path: data_digest(path) for path in paths}
        return dict(found)

    def _reached(self, first: str) -> tuple[dict[str, Module], set[Path]]:
        modules: dict[str, Module] = {}
        paths: set[Path] = set()
        waiting = [first]
        while waiting:
            name = waiting.pop()
            module = None if name in modules or _is_frame(name) else self.module(name)
            if module is None:
                continue
            modules[name] = module
            waiting += self._needed(name, module)
            for beside in (*BESIDE.get(name, ()), *(module.declared or ())):
                paths |= set(_below(self.top / beside)) if (self.top / beside).exists() else set()
            if module.path.name == "__init__.py":
                paths |= set(_data_of(module.path.parent))
        return modules, paths

    def _needed(self, name: str, module: Module) -> Iterator[str]:
        """Yield the names of the modules that one needs: its packages, its imports, what it starts."""
        started = module.declared
        if started is None:
            started = tuple(module.strings) if name.startswith("memsluice_lab.") else ()
        waiting = [name, *module.imports, *started]
        while waiting:
            parts = waiting.pop().split(".")
            for length in range(1, len(parts) + 1):
                part = ".".join(parts[:length])
                found = self.module(part)
                if found is None:
                    break
                yield part
                if part != name and length < len(parts) and parts[length] in found.lazily:
                    waiting.append(found.lazily[parts[length]])

    def module(self, name: str) -> Module | None:
        """Return a module of ours, or None where there is none of that name."""
        if name not in self._found:
            self._found[name] = self._read(name)
        return self._found[name]

    def _read(self, name: str) -> Module | None:
        if name.split(".")[0] not in PACKAGES or not all(part.isidentifier() for part in name.split(".")):
            return None
        path = self.top.joinpath("pipeline", *name.split("."))
        for file in (path / "__init__.py", path.with_suffix(".py")):
            if file.exists():
                return _module(file)
        return None


@lru_cache(maxsize=1)
def here() -> Tree:
    """Return the tree that this package lies in, as it was when it was first asked for."""
    return Tree(TOP)


def _is_frame(name: str) -> bool:
    return name in FRAME or name.rpartition(".")[0] in FRAME


def _module(path: Path) -> Module:
    tree = ast.parse(path.read_text(encoding="utf-8"), filename=str(path))
    typing_only = [node for node in ast.walk(tree) if isinstance(node, ast.If) and _is_typing(node.test)]
    skipped = {id(inner) for node in typing_only for part in node.body for inner in ast.walk(part)}
    imports = {name for node in ast.walk(tree) if id(node) not in skipped for name, _ in _imported(node)}
    lazily = {called: name for node in ast.walk(tree) if id(node) in skipped for name, called in _imported(node)}
    strings = {node.value for node in ast.walk(tree) if isinstance(node, ast.Constant) and isinstance(node.value, str)}
    named = {text.partition(":")[0] for text in strings if text.startswith(tuple(f"{top}." for top in PACKAGES))}
    return Module(path, _hash(json.dumps(plain(tree))), frozenset(imports), lazily, frozenset(named), _declared(tree))


def _is_typing(test: ast.expr) -> bool:
    return (isinstance(test, ast.Name) and test.id == "TYPE_CHECKING") or (
        isinstance(test, ast.Attribute) and test.attr == "TYPE_CHECKING"
    )


def _imported(node: ast.AST) -> Iterator[tuple[str, str]]:
    """Yield the dotted name of all that a statement imports, and what it is called there."""
    if isinstance(node, ast.Import):
        yield from ((alias.name, alias.asname or alias.name) for alias in node.names)
    elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
        yield from ((f"{node.module}.{alias.name}", alias.asname or alias.name) for alias in node.names)


def _declared(tree: ast.Module) -> tuple[str, ...] | None:
    for node in tree.body:
        if isinstance(node, ast.Assign) and [ast.unparse(target) for target in node.targets] == [DECLARED]:
            return tuple(ast.literal_eval(node.value))
    return None


def plain(node: Any) -> Any:
    """Return a syntax tree as lists: without positions, docstrings, descriptions of pydantic's fields, and the empty
    parts in which Pythons differ."""
    if isinstance(node, ast.AST):
        fields = {name: plain(value) for name, value in ast.iter_fields(node) if name not in ("kind", "ctx")}
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id == "Field":
            fields["keywords"] = [plain(one) for one in node.keywords if not _describes(one)]
        return [
            type(node).__name__,
            *([name, value] for name, value in sorted(fields.items()) if value not in ([], None)),
        ]
    if isinstance(node, list):
        return [plain(one) for one in node if not _is_text(one)]
    return node if isinstance(node, str | int | bool | None) else repr(node)


def _describes(node: ast.keyword) -> bool:
    return node.arg == "description" and isinstance(node.value, ast.Constant)


def _is_text(node: Any) -> bool:
    """Whether a statement is a string alone: a docstring, of whatever stands before it."""
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant) and isinstance(node.value.value, str)


def _data_of(package: Path) -> Iterator[Path]:
    """Yield the data files of a package: beside its modules, and in folders below it that hold no modules."""
    for path in package.iterdir():
        if path.is_file() or not any(path.rglob("*.py")):
            yield from (file for file in _below(path) if file.suffix not in NOT_DATA)


def _below(path: Path) -> Iterator[Path]:
    files = [path] if path.is_file() else path.rglob("*")
    yield from (file for file in files if file.is_file() and "__pycache__" not in file.parts)


def data_digest(path: Path) -> str:
    """Return the digest of a data file: of what a YAML file says, without comments and ``meta``, else of its bytes."""
    if path.suffix == ".py":
        return _hash(json.dumps(plain(ast.parse(path.read_text(encoding="utf-8")))))
    if path.suffix in (".yaml", ".yml"):
        said = yaml.safe_load(path.read_text(encoding="utf-8"))
        if isinstance(said, dict):
            said.pop("meta", None)  # a topic's name and description
        return _hash(json.dumps(said, sort_keys=True, default=str))
    return sha256(path.read_bytes()).hexdigest()


def locked(lock: dict[str, Any]) -> list[tuple[str, str]]:
    """Return name and version of every library that ours need, of any extra, from a lock file; no tools."""
    packages = {package["name"]: package for package in lock["package"]}
    found: dict[str, str] = {}
    waiting = [name.replace("_", "-") for name in PACKAGES]
    while waiting:
        package = packages.get(waiting.pop(), {})
        name = package.get("name")
        if name is None or name in found:
            continue
        found[name] = package.get("version", "")
        extras = package.get("optional-dependencies", {}).values()
        waiting += [needed["name"] for some in (package.get("dependencies", ()), *extras) for needed in some]
    return sorted(item for item in found.items() if item[0].replace("-", "_") not in PACKAGES)


def _hash(text: str) -> str:
    return sha256(text.encode()).hexdigest()
