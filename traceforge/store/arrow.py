"""Rows between DuckDB and polars without pyarrow. In: a relation, a frame or a query. Out: its Arrow stream."""

import re
from collections.abc import Sequence
from typing import Any

_NOT_IN_POLARS = ("INTERVAL", "UNION", "BIGNUM")
_ROWS_AT_ONCE = 131_072  # as a relation gives them
_QUESTION = re.compile(r"(?:\s|--.*\n)*(?:SELECT|WITH)\b[^;]*\Z")


class ArrowStream:
    """The Arrow stream of a relation or a frame, which polars and DuckDB read without pyarrow.

    Going through `pl.DataFrame(relation)` instead makes polars keep a cache of foreign types that DuckDB then
    reports as leaks on stderr when the process ends.
    """

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


class _AnswerStream:
    """The Arrow stream of an answer that is being given."""

    def __init__(self, answer: Any) -> None:
        self._answer = answer

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._answer.arrow_capsule()


def plain_answer(connection: Any, sql: str, parameters: Sequence[object]) -> Any | None:
    """The stream of a question whose columns polars can read as they are; None of all else.

    A relation is parsed and bound when it is made and once more when it is asked: of a question to small tables nearly
    a third of the time. DuckDB 2 has a way to ask once, which it does not promise to keep, so that a version without
    it is asked by a relation.
    """
    submit = getattr(connection, "_submit", None)
    if submit is None or not _QUESTION.match(sql):
        return None
    try:
        answer = submit(sql, list(parameters), "stream", _ROWS_AT_ONCE)
        columns = [(str(name).lower(), str(type_)) for name, type_, *_ in answer.description]
    except (AttributeError, TypeError):
        return None
    is_plain = not any(kind in type_ for _, type_ in columns for kind in _NOT_IN_POLARS)
    if is_plain and len({name for name, _ in columns}) == len(columns):
        return _AnswerStream(answer)
    answer.close()
    return None


def readable(relation: Any) -> Any:
    """The same rows with column names told apart (`a`, `a_1`) and, as text, what polars has no type for."""
    if len({name.lower() for name in relation.columns}) < len(relation.columns):
        relation = relation.select("*")
    foreign = [any(kind in str(type_) for kind in _NOT_IN_POLARS) for type_ in relation.types]
    if not any(foreign):
        return relation
    names = ['"' + name.replace('"', '""') + '"' for name in relation.columns]
    return relation.project(
        ", ".join(
            f"CAST({name} AS VARCHAR) AS {name}" if cast else name for name, cast in zip(names, foreign, strict=True)
        )
    )
