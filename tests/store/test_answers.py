"""What a database answers: an error of the query is one, wherever in the rows it comes."""

import pytest

from traceforge.errors import QueryError
from traceforge.store.database import Store


@pytest.mark.parametrize("row", [0, 200_000])
def test_an_error_in_any_row_of_an_answer_is_one_of_the_query(row: int) -> None:
    query = f"SELECT CASE WHEN range = {row} THEN error('boom') ELSE range END AS number FROM range(300000)"

    with Store(None) as store, pytest.raises(QueryError, match=r"refused the query: .*boom"):
        store.query(query)
