"""The head of an answer, for a terminal. In: a connection and SQL. Out: its first rows, and how many follow.

Idea: a few rows need neither Arrow nor polars, which takes longer to load than most questions take to answer.
Not handled: the number of further rows above `COUNTED`, as each has to be fetched to be counted.
"""

from typing import Any, NamedTuple

from traceforge.store.arrow import readable

COUNTED = 100_000
_AT_ONCE = 10_000
_NOT_RUN_YET = "QUERY_RELATION"  # of any other statement DuckDB has the rows already: it ran when it was named


class Preview(NamedTuple):
    """Names of columns, the first rows, and the number of further rows; above `COUNTED`, there are more than that."""

    names: list[str]
    rows: list[tuple[Any, ...]]
    further: int


def preview(connection: Any, sql: str, count: int) -> Preview:
    """The first `count` rows of a query; none of a statement that has no answer."""
    relation = connection.sql(sql)
    if relation is None:
        return Preview([], [], 0)
    shown = readable(relation)
    if shown is not relation or relation.type != _NOT_RUN_YET:
        rows = shown.fetchall()
        return Preview(list(shown.columns), rows[:count], max(0, len(rows) - count))
    answer = connection.execute(sql)
    first = answer.fetchmany(count)
    further = 0
    while rest := answer.fetchmany(_AT_ONCE):
        further += len(rest)
        if further > COUNTED:
            connection.execute("SELECT 1").fetchall()  # gives up the rest, which would keep others from being asked
            break
    return Preview(list(relation.columns), first, further)
