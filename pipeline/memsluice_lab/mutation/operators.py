"""The mutants of a source file: each one edit of one expression or statement, made on the text, so that all else stays.

What cannot change what the program does, or is for people alone, is not touched: docstrings, annotations, decorators,
``__slots__``, assertions, texts with a blank in them, what is logged, what an exception is made of, ``strict=`` of zip.
"""

import ast
from collections.abc import Iterator
from dataclasses import dataclass

COMPARISONS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<=", ast.LtE: "<", ast.Gt: ">=", ast.GtE: ">", ast.Eq: "!=", ast.NotEq: "==",
    ast.Is: "is not", ast.IsNot: "is", ast.In: "not in", ast.NotIn: "in",
}  # fmt: skip
COMPARISON_SIGNS: dict[type[ast.cmpop], str] = {
    ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">=", ast.Eq: "==", ast.NotEq: "!=",
    ast.Is: "is", ast.IsNot: "is not", ast.In: "in", ast.NotIn: "not in",
}  # fmt: skip
ARITHMETIC: dict[type[ast.operator], tuple[str, str]] = {
    ast.Add: ("+", "-"), ast.Sub: ("-", "+"), ast.Mult: ("*", "/"), ast.Div: ("/", "*"), ast.FloorDiv: ("//", "*"),
    ast.Mod: ("%", "*"), ast.Pow: ("**", "*"), ast.BitAnd: ("&", "|"), ast.BitOr: ("|", "&"), ast.BitXor: ("^", "&"),
    ast.LShift: ("<<", ">>"), ast.RShift: (">>", "<<"),
}  # fmt: skip
CALLS = {"min": "max", "max": "min", "any": "all", "all": "any"}
BY_ONE_MAX = 16
"""A whole number up to this one becomes its neighbours, a larger one its double and its half: a limit of
300 that is 299 is a matter of taste, and of no test.
"""
LOGS = ("_LOG", "LOG", "_log")
NAMING = ("TypeVar", "NewType", "Literal")
UNSEEN_ARGUMENTS = ("strict", "stacklevel")
"""Arguments that check what the program already guarantees, or move where a warning points."""


@dataclass(frozen=True, slots=True)
class Mutant:
    """One edit: the bytes from ``start`` to ``end`` of the file become ``text``.

    ``lines`` are the first and last of the statement it stands in (of a compound one, of its head); ``names`` are what
    that statement defines where it runs at import, or the compiled function around it, whose lines nobody sees run
    (then whoever uses these can notice); empty inside any other function.
    """

    operator: str
    line: int
    start: int
    end: int
    text: str
    lines: tuple[int, int]
    names: tuple[str, ...] = ()

    def apply(self, source: bytes) -> bytes:
        """Return the source with the edit."""
        return source[: self.start] + self.text.encode() + source[self.end :]


def mutants(source: bytes) -> list[Mutant]:
    """Return all mutants of a file, each once, in the order of its text."""
    different = {(one.start, one.end, one.text): one for one in _Finder(source).all()}
    return sorted(different.values(), key=lambda one: (one.start, one.end, one.text))


def compiles(source: bytes) -> bool:
    """Whether a mutant is a program at all."""
    try:
        compile(source, "mutant", "exec", dont_inherit=True)
    except SyntaxError:
        return False
    return True


class _Finder:
    """Walks a file, statement by statement."""

    def __init__(self, source: bytes) -> None:
        self._source = source
        self._starts = [0]
        for line in source.splitlines(keepends=True):
            self._starts.append(self._starts[-1] + len(line))
        self._lines = (0, 0)
        self._names: tuple[str, ...] = ()
        self._compiled: tuple[str, ...] = ()

    def all(self) -> list[Mutant]:
        """Return the mutants of the whole file."""
        return list(self._block(ast.parse(self._source).body, inside=False))

    # --- statements ---

    def _block(self, body: list[ast.stmt], *, inside: bool) -> Iterator[Mutant]:
        for statement in body:
            yield from self._statement(statement, inside=inside)

    def _statement(self, node: ast.stmt, *, inside: bool) -> Iterator[Mutant]:
        if _is_for_people(node) or isinstance(node, ast.Import | ast.ImportFrom | ast.Assert):
            return
        body: list[ast.stmt] = getattr(node, "body", [])
        last = body[0].lineno - 1 if body else node.end_lineno or node.lineno
        self._lines = (node.lineno, max(node.lineno, last))
        self._names = self._compiled if inside else _defined(node)
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            for default in (*node.args.defaults, *filter(None, node.args.kw_defaults)):
                self._names = () if inside else (node.name,)
                yield from self._expression(default)
            self._compiled = (node.name,) if _is_compiled(node) else ()
            yield from self._block(body, inside=True)
            self._compiled = ()
            return
        if isinstance(node, ast.ClassDef):
            yield from self._block(body, inside=inside)
            return
        yield from self._whole(node, inside=inside)
        yield from self._head(node)
        for part in (body, getattr(node, "orelse", []), getattr(node, "finalbody", [])):
            yield from self._block(part, inside=inside)
        for handler in getattr(node, "handlers", []):
            self._lines, self._names = (handler.lineno, handler.lineno), self._compiled
            if handler.type is not None:
                yield self._edit("handler never", handler.type, "()")
            yield from self._block(handler.body, inside=inside)

    def _whole(self, node: ast.stmt, *, inside: bool) -> Iterator[Mutant]:
        """Mutants that take the place of a statement."""
        if isinstance(node, ast.Expr | ast.AugAssign | ast.Raise | ast.Delete) and not isinstance(
            getattr(node, "value", None), ast.Yield | ast.YieldFrom
        ):
            yield self._edit("statement left out", node, "pass")
        if isinstance(node, ast.Return) and inside and not _is_none(node.value):
            yield self._edit("returns None", node, "return None")
        if isinstance(node, ast.Break):
            yield self._edit("break for continue", node, "continue")
        if isinstance(node, ast.Continue):
            yield self._edit("continue for break", node, "break")
        if isinstance(node, ast.AugAssign) and type(node.op) in ARITHMETIC:
            sign, other = ARITHMETIC[type(node.op)]
            yield from self._between("arithmetic", node.target, node.value, f"{sign}=", f"{other}=")

    def _head(self, node: ast.stmt) -> Iterator[Mutant]:
        """Mutants of the expressions that belong to the statement itself, not to one inside it."""
        if isinstance(node, ast.If | ast.While):
            yield from self._condition(node.test, both=isinstance(node, ast.If))
        if isinstance(node, ast.For | ast.AsyncFor):
            yield self._edit("no iteration", node.iter, "()")
        for child in ast.iter_child_nodes(node):
            if isinstance(node, ast.Raise) and child is node.exc:
                continue  # its own text and fields
            if isinstance(node, ast.AnnAssign) and child is node.annotation:
                continue
            if isinstance(child, ast.expr):
                yield from self._expression(child)
            if isinstance(child, ast.withitem):
                yield from self._expression(child.context_expr)

    # --- expressions ---

    def _expression(self, node: ast.expr) -> Iterator[Mutant]:
        if isinstance(node, ast.JoinedStr) or (isinstance(node, ast.Call) and _called(node) in NAMING):
            return
        yield from self._node(node)
        for child in ast.iter_child_nodes(node):
            if isinstance(child, ast.expr):
                yield from self._expression(child)
            elif isinstance(child, ast.keyword) and child.arg not in UNSEEN_ARGUMENTS:
                yield from self._expression(child.value)
            elif isinstance(child, ast.comprehension):
                for condition in child.ifs:
                    yield from self._condition(condition, both=True)
                    yield from self._expression(condition)
                yield from self._expression(child.iter)

    def _node(self, node: ast.expr) -> Iterator[Mutant]:
        if isinstance(node, ast.Compare):
            left = node.left
            for operator, right in zip(node.ops, node.comparators, strict=True):
                kind = type(operator)
                yield from self._between("comparison", left, right, COMPARISON_SIGNS[kind], COMPARISONS[kind])
                left = right
        elif isinstance(node, ast.BoolOp):
            yield from self._clauses(node)
        elif isinstance(node, ast.UnaryOp) and isinstance(node.op, ast.Not | ast.USub | ast.Invert):
            name = "not left out" if isinstance(node.op, ast.Not) else "sign left out"
            yield self._edit(name, node, f"({self._text(node.operand)})")
        elif isinstance(node, ast.BinOp) and type(node.op) in ARITHMETIC and _numeric(node):
            yield from self._between("arithmetic", node.left, node.right, *ARITHMETIC[type(node.op)])
        elif isinstance(node, ast.IfExp):
            yield from self._condition(node.test, both=True)
        elif isinstance(node, ast.Call) and _called(node) in CALLS and isinstance(node.func, ast.Name):
            yield self._edit("another function", node.func, CALLS[node.func.id])
        elif isinstance(node, ast.Constant):
            yield from self._constant(node)

    def _clauses(self, node: ast.BoolOp) -> Iterator[Mutant]:
        """Each clause left out by itself, and the connectives exchanged."""
        sign, other = ("and", "or") if isinstance(node.op, ast.And) else ("or", "and")
        texts = [f"({self._text(value)})" for value in node.values]
        for at in range(len(texts)):
            left = texts[:at] + texts[at + 1 :]
            yield self._edit("clause left out", node, f"({f' {sign} '.join(left)})", line=node.values[at].lineno)
        yield self._edit("connective", node, f"({f' {other} '.join(texts)})")

    def _condition(self, node: ast.expr, *, both: bool) -> Iterator[Mutant]:
        if isinstance(node, ast.Constant):
            return
        for value in ("True", "False") if both else ("False",):
            yield self._edit("condition", node, value)

    def _constant(self, node: ast.Constant) -> Iterator[Mutant]:
        value = node.value
        if isinstance(value, bool):
            yield self._edit("constant", node, str(not value))
        elif isinstance(value, int) and value > BY_ONE_MAX:
            yield self._edit("constant", node, repr(value * 2))
            yield self._edit("constant", node, repr(value // 2))
        elif isinstance(value, int | float):
            yield self._edit("constant", node, repr(value + 1))
            yield self._edit("constant", node, f"({value - 1!r})")
        elif isinstance(value, str) and value and not any(map(str.isspace, value)):
            yield self._edit("constant", node, repr(f"{value}~"))
        elif isinstance(value, bytes) and value:
            yield self._edit("constant", node, repr(value + b"~"))

    # --- text ---

    def _place(self, line: int, column: int) -> int:
        return self._starts[line - 1] + column

    def _span(self, node: ast.expr | ast.stmt) -> tuple[int, int]:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._place(node.lineno, node.col_offset), self._place(node.end_lineno, node.end_col_offset)

    def _text(self, node: ast.expr) -> str:
        start, end = self._span(node)
        return self._source[start:end].decode()

    def _edit(self, operator: str, node: ast.expr | ast.stmt, text: str, line: int | None = None) -> Mutant:
        return Mutant(operator, line or node.lineno, *self._span(node), text, self._lines, self._names)

    def _between(self, operator: str, left: ast.expr, right: ast.expr, sign: str, other: str) -> Iterator[Mutant]:
        """Exchange the sign between two operands; it is the only such text there, parentheses and comments apart."""
        start, end = self._span(left)[1], self._span(right)[0]
        at = self._source[start:end].find(sign.encode())
        if at >= 0:
            place = (start + at, start + at + len(sign))
            yield Mutant(operator, left.end_lineno or left.lineno, *place, other, self._lines, self._names)


def _is_for_people(node: ast.stmt) -> bool:
    """Whether a statement is a docstring, a log entry, or ``__slots__`` and the like."""
    if isinstance(node, ast.Expr):
        if isinstance(node.value, ast.Constant):
            return True
        call = node.value
        return (
            isinstance(call, ast.Call)
            and isinstance(call.func, ast.Attribute)
            and isinstance(call.func.value, ast.Name)
            and call.func.value.id in LOGS
        )
    if isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING":
        return True
    return any(name.startswith("__") for name in _defined(node)) and not isinstance(node, ast.FunctionDef)


def _defined(node: ast.stmt) -> tuple[str, ...]:
    if isinstance(node, ast.Assign):
        return tuple(name.id for target in node.targets for name in ast.walk(target) if isinstance(name, ast.Name))
    if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name):
        return (node.target.id,)
    return ()


def _is_compiled(node: ast.FunctionDef | ast.AsyncFunctionDef) -> bool:
    return any(isinstance(one, ast.Call) and _called(one) == "compiled" for one in node.decorator_list)


def _called(node: ast.Call) -> str:
    return node.func.id if isinstance(node.func, ast.Name) else ""


def _numeric(node: ast.BinOp) -> bool:
    """Whether neither side is a text or None, with which nothing but an error could come of another sign."""
    sides = (node.left, node.right)
    return not any(
        isinstance(side, ast.JoinedStr)
        or (isinstance(side, ast.Constant) and (side.value is None or isinstance(side.value, str | bytes)))
        for side in sides
    )


def _is_none(node: ast.expr | None) -> bool:
    return node is None or (isinstance(node, ast.Constant) and node.value is None)
