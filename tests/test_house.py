"""The house rules of CONTRIBUTING.md, as far as a program can check them."""

import ast
import fnmatch
import inspect
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path

import layers

from memsluice import errors
from memsluice.gate.reasons import WORDS

TOP = Path(__file__).resolve().parent.parent
PACKAGE = TOP / "pipeline" / "memsluice"
LABORATORY = TOP / "pipeline" / "memsluice_lab"
FUNCTION_LINES_MAX = 69
FILE_LINES_MAX = 400

IMPURE_MODULES = {
    "aiokafka",
    "asyncio",
    "confluent_kafka",
    "faust",
    "httpx",
    "io",
    "multiprocessing",
    "os",
    "pathlib",
    "random",
    "requests",
    "rocksdict",
    "secrets",
    "shutil",
    "socket",
    "sqlite3",
    "subprocess",
    "tempfile",
    "threading",
    "time",
    "torch",
    "transformers",
    "urllib",
    "uuid",
    "weaviate",
}
IMPURE_CALLS = {"open", "input", "print", "now", "utcnow", "today", "urandom", "read_text", "read_bytes", "write_text"}
READS_FILES = ("model.py", "shipped.py", "proactive.py")
"""The gate's doors to the disk: an operator's policy file is read, checked and frozen before anything is decided.

So are the model and the probes that ship with the package."""


def _sources(folder: Path = PACKAGE) -> list[Path]:
    return sorted(folder.rglob("*.py"))


def _tree(path: Path) -> ast.Module:
    return ast.parse(path.read_text(encoding="utf-8"), filename=str(path))


def _name(path: Path) -> str:
    return str(path.relative_to(TOP))


def _functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node


def _imports(tree: ast.AST) -> Iterator[str]:
    """Yield the dotted name of everything imported, wherever in the file, ``from a import b`` as ``a.b``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module and node.level == 0:
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_functions_stay_short() -> None:
    """A function fits on one screen (under 70 lines), in the package, its laboratory, its tests and its scripts."""
    long = [
        f"{_name(path)}:{function.lineno} {function.name}"
        for path in [*_sources(), *_sources(LABORATORY), *_sources(TOP / "tests"), *_sources(TOP / "scripts")]
        for function in _functions(_tree(path))
        if (function.end_lineno or 0) - function.lineno + 1 > FUNCTION_LINES_MAX
    ]
    assert not long


def test_files_stay_small() -> None:
    """A file of the package, or of its laboratory, has one reason to change, and its length shows it."""
    sources = [*_sources(), *_sources(LABORATORY)]
    long = [_name(path) for path in sources if path.read_text(encoding="utf-8").count("\n") > FILE_LINES_MAX]
    assert not long


def test_every_package_says_what_it_is() -> None:
    """Opening a folder, a stranger reads one sentence on what is in it."""
    silent = [
        _name(path)
        for path in _sources()
        if path.name == "__init__.py" and len((ast.get_docstring(_tree(path)) or "").split()) < 3
    ]
    assert not silent


REFERENCE = re.compile(r":(?:mod|class|func|meth|data|attr|exc):`~?(memsluice(?:_lab)?(?:\.\w+)+)`")


def test_docstrings_name_what_exists() -> None:
    """A reference to a module of the project, or to a name in one, can be followed."""
    references = [(path, name) for path in _sources() for name in REFERENCE.findall(path.read_text(encoding="utf-8"))]
    assert references
    assert not [f"{_name(path)}: {name}" for path, name in references if not _resolves(name.split("."))]


def _resolves(parts: list[str]) -> bool:
    """Whether a dotted name is a package, a module, or a name that its module binds (and, of a class, has)."""
    for length in range(len(parts), 0, -1):
        target = PACKAGE.parent.joinpath(*parts[:length])
        if target.is_dir():
            return length == len(parts) or _binds(target / "__init__.py", parts[length:])
        if target.with_suffix(".py").is_file():
            return _binds(target.with_suffix(".py"), parts[length:])
    return False


def _binds(module: Path, names: list[str]) -> bool:
    text = module.read_text(encoding="utf-8")
    return all(
        re.search(rf"(class|def) {name}\b|^\s*{name}(:.*)? =|^\s*{name}: ", text, re.MULTILINE) for name in names
    )


def test_every_test_says_what_it_protects() -> None:
    """A test's docstring states the behaviour, so that a failing run reads as a list of broken promises."""
    silent = [
        f"{_name(path)}:{function.lineno} {function.name}"
        for path in _sources(TOP / "tests")
        for function in _functions(_tree(path))
        if function.name.startswith("test_") and not (ast.get_docstring(function) or "").strip()
    ]
    assert not silent


def test_no_test_is_retried_or_switched_off() -> None:
    """A flaky test is mended, not repeated; a test that does not run protects nothing."""
    marks = re.compile(r"pytest\.mark\.(skip\b|xfail|flaky)|reruns=")
    found = [
        _name(path)
        for path in _sources(TOP / "tests")
        if path != Path(__file__) and marks.search(path.read_text(encoding="utf-8"))
    ]
    assert not found


def test_imports_point_down_and_in_no_circle() -> None:
    """Data moves one way, and so do imports: every part has a place in the list of layers, and no arrow points back."""
    assert layers.problems(PACKAGE.parent) == []


def test_an_arrow_that_points_back_is_found(tmp_path: Path) -> None:
    """The check of the layers sees an import upwards, however it is written, a part without a place, and a circle."""
    package = tmp_path / "memsluice"
    for name, text in {
        "__init__.py": "from memsluice.client.writer import MemoryWriter\n",
        "client/writer.py": "",
        "gate/e.py": "from memsluice import MemoryWriter\n",
        "gate/f.py": "from ..client import writer\nfrom . import g\n",
        "gate/g.py": "from .f import x\n",
        "gate/h.py": "import memsluice\n",
        "errors.py": "import importlib\nimportlib.import_module('memsluice.gate.h')\n",
        "events/a.py": "from memsluice.envelope import b\n",
        "envelope/b.py": "import memsluice.envelope.c\n",
        "envelope/c.py": "from memsluice.envelope.b import x\n",
        "stray/d.py": "",
    }.items():
        (package / name).parent.mkdir(parents=True, exist_ok=True)
        (package / name).write_text(text)
    found = "\n".join(layers.problems(tmp_path))
    assert "events imports memsluice.envelope.b" in found
    assert "memsluice.stray.d has no place" in found
    assert "circle of imports: memsluice.envelope.b, memsluice.envelope.c" in found
    assert "circle of imports: memsluice.gate.f, memsluice.gate.g" in found
    assert "h.py:1 gate imports memsluice itself" in found
    assert "e.py:1 gate imports memsluice.client.writer, which is no part of the core" in found
    assert "errors imports memsluice.gate.h" in found


def test_the_gate_is_pure() -> None:
    """Decisions depend on arguments alone: the gate touches no clock, no chance, no file, no network."""
    wrong = []
    for path in _sources(PACKAGE / "gate"):
        if path.name in READS_FILES:
            continue
        tree = _tree(path)
        wrong += [f"{_name(path)} imports {name}" for name in _imports(tree) if name.split(".")[0] in IMPURE_MODULES]
        for node in ast.walk(tree):
            if isinstance(node, ast.Call):
                called = node.func.attr if isinstance(node.func, ast.Attribute) else getattr(node.func, "id", "")
                if called in IMPURE_CALLS:
                    wrong.append(f"{_name(path)}:{node.lineno} calls {called}()")
    assert not wrong


def _codes(tree: ast.Module) -> Iterator[tuple[int, str]]:
    """Yield line and code where one is given: to ``Finding`` (of an f-string, its leading text), a function, or a name.

    Where a code is compared, or listed among others, nothing is decided.
    """
    for node in ast.walk(tree):
        if isinstance(node, ast.Call):
            made = getattr(node.func, "id", "") == "Finding"
            given = [part for some in (*node.args, *(k.value for k in node.keywords)) for part in _either(some)]
        elif isinstance(node, ast.Assign):
            made, given = False, _either(node.value)
        else:
            continue
        first = given[:1]
        for some in given:
            text = some.values[0] if isinstance(some, ast.JoinedStr) and some.values else some
            code = text.value if isinstance(text, ast.Constant) and isinstance(text.value, str) else ""
            if code in WORDS or (made and some in first):
                yield node.lineno, code


def _either(node: ast.expr) -> list[ast.expr]:
    return [*_either(node.body), *_either(node.orelse)] if isinstance(node, ast.IfExp) else [node]


def _elsewhere(path: Path, tree: ast.Module) -> list[str]:
    """Return what codes a file of the gate gives that are neither its own nor those of a folder that it lies in."""
    own = {path.stem, *path.relative_to(PACKAGE / "gate").parts[:-1]}
    return [f"{_name(path)}:{line} {code}" for line, code in _codes(tree) if code and code.split(".")[0] not in own]


def test_a_reason_code_names_the_module_that_decided() -> None:
    """From a verdict's reason a stranger finds the rule in one hop: a code begins with the name of the file that gives
    it (``rates.exceeded``: gate/checks/rates.py), or of the folder (``commands.expired``: gate/commands)."""
    assert [text for path in _sources(PACKAGE / "gate") for text in _elsewhere(path, _tree(path))] == []
    somewhere = PACKAGE / "gate" / "checks" / "rates.py"
    planted = ast.parse(
        "Finding('review.tainted', 1)\nFinding(f'memsad.{x}')\nmove('renewal.renewed')\n"
        "Finding('rates.new')\ncode == 'review.tainted'\nmove('rates.exceeded' if x else 'review.unknown')"
    )
    assert [text.rsplit(" ", 1)[1] for text in _elsewhere(somewhere, planted)] == [
        "review.tainted", "memsad.", "renewal.renewed", "review.unknown",
    ]  # fmt: skip


def _tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files", "-z"], cwd=TOP, capture_output=True, text=True, check=True).stdout
    return [TOP / name for name in listed.split("\0") if name and (TOP / name).is_file()]


def test_no_path_of_one_machine_stands_in_the_tree() -> None:
    """Somebody else's clone, on another machine, is the same project."""
    homes = re.compile(rb"(?<![\w.$}~-])/(?:ho" rb"me|ro" rb"ot|wo" rb"rk|fa" rb"rm|Us" rb"ers)/[a-z]")
    found = [_name(path) for path in _tracked() if homes.search(path.read_bytes())]
    assert not found


MADE_LATER = {"deploy/compose/secrets.env"}
"""Files that the documentation names and that a command makes."""


def _paths_of_the_tree() -> set[str]:
    """Return every tracked file and folder, as it is called from the top, from ``pipeline`` and from the package."""
    files = [
        path.relative_to(root) for root in (TOP, PACKAGE.parent, PACKAGE) for path in _tracked() if root in path.parents
    ]
    return {str(each) for file in files for each in (file, *file.parents)}


def _paths_named(page: str, tree: set[str]) -> list[str]:
    """Return the paths of this repository that a page has in backticks: what begins with one of its folders."""
    prose = re.sub(r"^```.*?^```", "", page, flags=re.MULTILINE | re.DOTALL)
    words = [word for code in re.findall(r"`([^`\n]+)`", prose) for word in code.split()]
    return [word for word in words if "/" in word and word.split("/")[0] in tree]


def _is_there(path: str, tree: set[str]) -> bool:
    """Tell whether the tree has a path: with ``{a,b}`` both, with ``<name>`` any."""
    if braces := re.search(r"\{([^}]*)\}", path):
        return all(_is_there(path.replace(braces[0], one, 1), tree) for one in braces[1].split(","))
    return bool(fnmatch.filter(tree, re.sub(r"<[^>]*>", "*", path).rstrip("/")))


def test_paths_in_the_documentation_exist() -> None:
    """A page that names a file or a folder of this repository names one that is there."""
    tree = _paths_of_the_tree()
    written = [page for page in sorted((TOP / "docs").glob("*.md")) if page.name != "figures.md"]  # files as measured
    pages = [*written, TOP / "README.md", TOP / "CONTRIBUTING.md"]
    named = [(page.name, path) for page in pages for path in _paths_named(page.read_text(encoding="utf-8"), tree)]
    assert len(named) > len(pages)
    assert [one for one in named if one[1] not in MADE_LATER and not _is_there(one[1], tree)] == []


def test_a_path_that_is_gone_is_found() -> None:
    """The check sees a folder, and one of two files in braces, that are gone, and takes no other slash for a path."""
    tree = {"gate", "gate/checks", "gate/checks/rates.py", "cli", "cli/held", "cli/held/replay.py"}
    page = "`gate/checks/rates.py` `gate/gone/` `cli/{held,gone}/replay.py` `gate/checks/<prefix>.py` `req/s`\n"
    named = _paths_named(f"{page}```bash\n`gate/fenced.py`\n```\n", tree)
    assert [path for path in named if not _is_there(path, tree)] == ["gate/gone/", "cli/{held,gone}/replay.py"]
    assert len(named) == 4


def test_no_secret_is_tracked() -> None:
    """Keys live in a home directory, never in the repository."""
    secret = re.compile(rb"-----BEGIN [A-Z ]*PRIVATE KEY-----")
    names = {"keyring.json", "stack.json", "registry.yaml", "embedded.db"}
    found = [_name(path) for path in _tracked() if path.name in names or secret.search(path.read_bytes())]
    assert not found


def _drawn_tree(text: str) -> dict[str, str | None]:
    """Read the tree drawn in the docstring of errors.py: class name to its parent's name."""
    parents: dict[str, str | None] = {}
    above: list[tuple[int, str]] = []
    for line in text.splitlines():
        match = re.match(r"^([\s│├└─]*)([A-Z]\w+)(\s{2,}.*)?$", line)
        if match is None or line.startswith("Every"):
            continue
        depth = len(match[1])
        while above and above[-1][0] >= depth:
            above.pop()
        parents[match[2]] = above[-1][1] if above else None
        above.append((depth, match[2]))
    return parents


def test_the_drawn_exception_tree_is_the_real_one() -> None:
    """What errors.py draws is what a caller can catch: the same classes under the same parents."""
    real = {
        name: (None if kind is errors.MemsluiceError else kind.__mro__[1].__name__)
        for name, kind in vars(errors).items()
        if inspect.isclass(kind) and issubclass(kind, Exception) and kind.__module__ == errors.__name__
    }
    assert _drawn_tree(errors.__doc__ or "") == real


def test_reason_codes_of_bad_input_are_unique() -> None:
    """A dead letter's reason code names one class of error."""
    codes = [kind.code for kind in _below(errors.InputError)]
    assert len(codes) == len(set(codes))


def _below(kind: type[errors.InputError]) -> list[type[errors.InputError]]:
    return [kind, *(each for child in kind.__subclasses__() for each in _below(child))]


def test_only_exceptions_of_the_tree_are_defined() -> None:
    """There is one tree of exceptions that callers meet, in one file; a private one never leaves its module."""
    elsewhere = [
        f"{_name(path)}:{node.lineno} {node.name}"
        for path in _sources()
        if path.name != "errors.py"
        for node in ast.walk(_tree(path))
        if isinstance(node, ast.ClassDef)
        and not node.name.startswith("_")
        and any(getattr(b, "id", "").endswith(("Error", "Exception")) for b in node.bases)
    ]
    assert not elsewhere


def compiled_functions(tree: ast.Module) -> list[ast.FunctionDef]:
    """The functions of a module that are compiled."""
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    marks = [[mark.func for mark in one.decorator_list if isinstance(mark, ast.Call)] for one in functions]
    named = [any(isinstance(mark, ast.Name) and mark.id == "compiled" for mark in some) for some in marks]
    return [one for one, is_compiled in zip(functions, named, strict=True) if is_compiled]


def borrowed(source: str) -> set[str]:
    """What the compiled functions of a module use of other modules, besides NumPy and ``math``."""
    tree = ast.parse(source)
    imports = [node for node in tree.body if isinstance(node, ast.Import | ast.ImportFrom)]
    foreign = {alias.asname or alias.name for node in imports for alias in node.names} - {"np", "math"}
    bodies = [node for one in compiled_functions(tree) for line in one.body for node in ast.walk(line)]
    return foreign & {node.id for node in bodies if isinstance(node, ast.Name)}


def test_compiled_arithmetic_rests_on_its_own_file() -> None:
    """Machine code is made anew only when its own file changes: a constant of another would stay what it was."""
    sources = [path.read_text() for path in (PACKAGE / "gate").rglob("*.py")]
    assert sum(len(compiled_functions(ast.parse(source))) for source in sources) > 15
    assert set().union(*map(borrowed, sources)) == set()
    assert borrowed("from a import B\n@compiled('f')\ndef f(x):\n    return x + B\n") == {"B"}


def _is_verdict(node: ast.expr) -> bool:
    """Whether an expression is named like a verdict, or like what is nested in one."""
    match node:
        case ast.Name(id=name) | ast.Attribute(attr=name):
            return name in ("verdict", "finding", "usual", "withdrawal")
        case ast.Subscript(slice=ast.Constant(value="verdict")):
            return True
        case ast.Subscript(value=ast.Attribute(attr=name)):
            return name in ("findings", "withdraws", "verdicts")
    return False


def _subscripted(tree: ast.AST) -> Iterator[int]:
    """Yield the lines that look a verdict's field up by its name as a string."""
    for node in ast.walk(tree):
        match node:
            case ast.Subscript(value=value, slice=ast.Constant(value=str())) if _is_verdict(value):
                yield node.lineno
            case ast.Call(func=ast.Attribute(value=value, attr="get"), args=[ast.Constant(value=str()), *_]):
                if _is_verdict(value):
                    yield node.lineno


def test_a_verdict_is_read_and_written_in_one_place() -> None:
    """A verdict is a type: only its reader and its writer look a field up by a string, which no type checker sees."""
    found = [
        f"{_name(path)}:{line}"
        for path in _sources(PACKAGE.parent)
        if path != PACKAGE / "envelope" / "verdict.py"
        for line in _subscripted(_tree(path))
    ]
    assert found == []


def test_a_subscripted_verdict_is_found() -> None:
    """The check sees subscripts and ``get``, of the verdict and of what is nested in it."""
    text = """
verdict["tenant"]
self.verdict.get("tenant")
row["verdict"]["tenant"]
one.verdict.findings[0]["code"]
finding["code"]
finding.detail["words"]
verdicts["name"]
"""
    assert list(_subscripted(ast.parse(text))) == [2, 3, 4, 5, 6]


NO_ROWS = {"changes", "detail", "parameters", "stored", "verdict"}
"""What is subscripted by a name where rows are read, and is none: what a command
changes, a finding's detail, a command's parameters, a file, a verdict."""
READ_ROWS = ("gate/checks", "gate/commands", "gate/detectors", "gate/state", "gate/decide.py", "gate/decision.py",
             "stages/screen.py", "stages/sweep.py", "stages/dry_screen.py", "telemetry/entry_counts.py")  # fmt: skip


def by_name(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield line and source of what reads a field by a string: ``some["field"]``, ``some.get("field")``."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Subscript) and isinstance(node.ctx, ast.Load):
            some, key = node.value, node.slice
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            some, key = node.func.value, node.args[0]
            if node.func.attr not in ("get", "pop", "setdefault"):
                continue
        else:
            continue
        name = getattr(some, "attr", getattr(some, "id", ""))
        if isinstance(key, ast.Constant) and isinstance(key.value, str) and name not in NO_ROWS:
            yield node.lineno, ast.unparse(node)


def test_no_field_of_a_row_is_named_by_a_string() -> None:
    """A row is what its type in gate/state/kinds.py says: whoever mistypes a field is told before anything runs."""
    sources = [path for name in READ_ROWS for path in (_sources(PACKAGE / name) or [PACKAGE / name])]
    assert [f"{_name(path)}:{line} {text}" for path in sources for line, text in by_name(_tree(path))] == []
    assert len(list(by_name(ast.parse("row['x']; one.row.get('x', 1); detail['y'] = 1; row[0]; some[name]")))) == 2


def test_rows_become_values_in_one_place() -> None:
    """Bytes of rows are read and written by gate/state/rows.py alone, so that encrypting them is one switch."""
    loaders = re.compile(r"orjson\.loads|json\.decode|json\.Decoder|json\.Encoder|orjson\.dumps")
    sources = [path for name in READ_ROWS for path in (_sources(PACKAGE / name) or [PACKAGE / name])]
    found = {path.name: loaders.findall(path.read_text(encoding="utf-8")) for path in sources}
    assert [name for name, some in found.items() if some and name != "rows.py"] == []
