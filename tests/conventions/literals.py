"""Finds numbers that may decide what is said. In: the text of a Python or SQL file. Out: each number with its place.

Idea: a number judges where it is compared, limits or cuts (`min`, `max`, `LEAST`, `GREATEST`, quantiles), or has a name
or a default that such a place may read. Sums, factors and indices elsewhere are arithmetic.
Not handled: numbers that reach a comparison through a local variable.
"""

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass

# Numbers that carry no judgement of ours: nothing, one, a half, a pair, and conversions of units.
_PLAIN = {0, 1, 0.5, 2}
_UNITS = {60, 3_600, 86_400, 1e3, 1e6, 1e9, 1e12, 1_024, 1_024**2, 1_024**3, 1e-3, 1e-6, 1e-9}
_LIMITING = {"min", "max", "minimum", "maximum", "clip", "quantile", "nanquantile", "percentile", "clamp"}


@dataclass(frozen=True, slots=True, order=True)
class Literal:
    """A number and the name of what holds it: a constant, a field, a function's name, or the alias in SQL."""

    file: str
    owner: str
    line: int
    value: float


def of_python(file: str, text: str) -> Iterator[Literal]:
    """Numbers in named constants, defaults of fields and parameters, comparisons, limits and quantiles."""
    yield from _in_block(file, "", ast.parse(text).body)


def _in_block(file: str, owner: str, statements: list[ast.stmt]) -> Iterator[Literal]:
    for statement in statements:
        match statement:
            case ast.ClassDef(name=name, body=body):
                yield from _in_block(file, f"{owner}{name}.", body)
            case ast.FunctionDef(name=name) | ast.AsyncFunctionDef(name=name):
                yield from _literals(file, owner + name, _judging(statement))
            case (
                ast.Assign(targets=[target, *_], value=value) | ast.AnnAssign(target=target, value=ast.expr() as value)
            ):
                yield from _literals(file, owner + ast.unparse(target), [value])
            case _:
                yield from _literals(file, owner or "module", _judging(statement))


def _judging(function: ast.stmt) -> Iterator[ast.expr]:
    """The outermost expressions of a function in which a number may judge."""
    for node in ast.walk(function):
        match node:
            case ast.arguments(defaults=defaults, kw_defaults=named):
                yield from defaults
                yield from (default for default in named if default is not None)
            case ast.Compare():
                yield node
            case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)) if name in _LIMITING:
                yield node


def _literals(file: str, owner: str, expressions: Iterator[ast.expr] | list[ast.expr]) -> Iterator[Literal]:
    found = {
        (node.lineno, node.col_offset): float(node.value)
        for expression in expressions
        for node in _numbers(expression)
        if node.value not in _PLAIN | _UNITS
    }
    for (line, _), value in sorted(found.items()):
        yield Literal(file, owner, line, value)


def _numbers(node: ast.AST) -> Iterator[ast.Constant]:
    if isinstance(node, ast.Constant) and type(node.value) in (int, float):
        yield node
    elif isinstance(node, ast.Subscript):  # which element is no judgement
        yield from _numbers(node.value)
    else:
        for child in ast.iter_child_nodes(node):
            yield from _numbers(child)


_WORDS = re.compile(
    r"--[^\n]*|'(?:[^']|'')*'|\b(?:SELECT|FROM|WHERE|AND|OR|ON|WHEN|THEN|ELSE|END|HAVING|QUALIFY|FILTER|ORDER|GROUP|LIMIT"
    r"|JOIN|WINDOW|AS)\b"
)
_COMPARED = re.compile(r"(?<![<>])[<>](?![<>])|(?<![<>!:])=(?!>)|\bBETWEEN\b")  # but no shift of bits
_BETWEEN = re.compile(r"(\bBETWEEN\s[^\n]*?\s)AND\b")
_LIMITED = re.compile(r"\b(?:LEAST|GREATEST|QUANTILE\w*|APPROX_QUANTILE)\s*\((?:[^()]|\([^()]*\))*\)(?:\s+OVER\s+\w+)?")
_NUMBER = re.compile(r"(?<![\w.$\[])\d[\d_]*(?:\.\d+)?(?:[eE]-?\d+)?(?![\w.])")


def of_sql(file: str, text: str) -> Iterator[Literal]:
    """Numbers in comparisons, LEAST, GREATEST and quantiles; a column `p95_...` may hold the quantile of its name."""
    plain = _WORDS.sub(_blanked, _BETWEEN.sub(lambda found: found[1] + "   ", text))
    spans = [(found.start(), found.end()) for found in _LIMITED.finditer(plain)]
    start = 0
    for found in re.finditer(r"[;\x00]|,(?![^()]*\))|$", plain):
        if _COMPARED.search(plain, start, found.start()):
            spans.append((start, found.start()))
        start = found.end()
    numbers = {place.start(): place[0] for begin, end in spans for place in _NUMBER.finditer(plain, begin, end)}
    for place, number in sorted(numbers.items()):
        value = float(number.replace("_", ""))
        factor = "*" in plain[max(0, place - 2) : place] or plain[place + len(number) :].lstrip().startswith("*")
        if value in {0, 1} | _UNITS or (value == 2 and not factor):  # twice something judges, a pair does not
            continue
        if not _names_its_quantile(plain, place, value):
            yield Literal(file, "", text.count("\n", 0, place) + 1, value)


def _blanked(word: re.Match[str]) -> str:
    """A comment or text as blanks, a keyword as a mark, in equally many characters."""
    return ("\x00" if word[0][0] not in "-'" else " ") * len(word[0])


def _names_its_quantile(plain: str, place: int, value: float) -> bool:
    alias = re.match(r"[^\x00,]*\)\s*(?:AS BIGINT\)\s*)?\x00\x00\s*p?(\w+)", plain[place:])
    return bool(alias) and (value == 0.5 or (alias is not None and f"{100 * value:g}" in alias[1]))
