"""What a database answers: an error of the query is one, wherever in the rows it comes."""

import pytest

from traceforge import api
from traceforge.errors import QueryError
from traceforge.store.database import Store


@pytest.mark.parametrize("row", [0, 200_000])
def test_an_error_in_any_row_of_an_answer_is_one_of_the_query(row: int) -> None:
    query = f"SELECT CASE WHEN range = {row} THEN error('boom') ELSE range END AS number FROM range(300000)"

    with Store(None) as store, pytest.raises(QueryError, match=r"refused the query: .*boom"):
        store.query(query)


@pytest.mark.parametrize(
    ("asked", "meant"),
    [("attribute.verdcit", "attribute.verdict"), ("iteration", "timeline.iteration"), ("meta.rnu", "meta.run")],
)
def test_a_table_that_is_not_there_is_answered_with_those_of_like_names(asked: str, meant: str) -> None:
    with Store(None) as store:
        api.analyze(store)
        with pytest.raises(QueryError) as refused:
            store.query(f"FROM {asked}")

    assert "Did you mean" not in refused.value.what
    assert refused.value.hint is not None
    assert refused.value.hint.startswith(f"did you mean {meant}")


def test_a_table_like_none_is_answered_with_how_to_list_them() -> None:
    with Store(None) as store, pytest.raises(QueryError) as refused:
        store.query("FROM foo")

    assert "traceforge_migration" not in str(refused.value)
    assert refused.value.hint == "`traceforge sql DB --list` lists all tables"
