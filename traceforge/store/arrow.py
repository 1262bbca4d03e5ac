"""Rows between DuckDB and polars without pyarrow. In: a relation or a frame. Out: its Arrow stream."""

from typing import Any

_NOT_IN_POLARS = ("INTERVAL", "UNION", "BIGNUM")


class ArrowStream:
    """The Arrow stream of a relation or a frame, which polars and DuckDB read without pyarrow.

    Going through `pl.DataFrame(relation)` instead makes polars keep a cache of foreign types that DuckDB then
    reports as leaks on stderr when the process ends.
    """

    def __init__(self, relation: Any) -> None:
        self._relation = relation

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object:
        return self._relation.__arrow_c_stream__(requested_schema)


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
