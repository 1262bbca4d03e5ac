"""Answers in pages. In: columns and rows. Out: JSON text of one page that stays below a limit of size.

Idea: a page is as many rows as fit; where pages begin follows from the rows alone, so that the same page holds the same
rows each time. A cell that alone would fill a page is cut, and says so. Tokens are not counted but bounded: text of
these answers has at least 2.5 bytes a token in the vocabularies in use.
"""

import json
from collections.abc import Iterator, Mapping, Sequence

from traceforge.errors import UsageError
from traceforge.store.json_values import json_value

MOST_TOKENS = 4_000
MOST_BYTES = MOST_TOKENS * 5 // 2
_ROWS_BYTES = MOST_BYTES * 6 // 10
_MOST_OF_A_CELL = 1_200
_MOST_OF_A_TEXT = 2_000

Row = Sequence[object]


def page_of(
    columns: Sequence[str], rows: Sequence[Row], sql: str, page: int = 1, *, further: int = 0, **beside: object
) -> str:
    """One page as JSON text.

    Args:
        sql: what yields the rows.
        page: from 1.
        further: rows that were not fetched at all.
        beside: more keys, on the first page only.

    Raises:
        UsageError: there is no such page.
    """
    texts = [_row_text(row) for row in rows]
    pages = list(_divided([len(text.encode()) + 1 for text in texts])) or [(0, 0)]
    if not 1 <= page <= len(pages):
        raise UsageError(f"there is no page {page}", hint=f"pages: 1 to {len(pages)}")
    first, end = pages[page - 1]
    document: dict[str, object] = {
        "columns": list(columns),
        "rows": [json.loads(text) for text in texts[first:end]],
        "page": page,
        "pages": len(pages),
        "rows_in_all": len(rows) + further,
        "sql": short_text(sql),
    }
    if further:
        document["left_out"] = f"{further} further rows were not fetched: narrow the query"
    if page == 1:
        document |= {key: value for key, value in beside.items() if value is not None}
    return json.dumps(document, ensure_ascii=True, allow_nan=False, separators=(",", ":"))


def records_page(records: Sequence[Mapping[str, object]], sql: str, page: int = 1, **beside: object) -> str:
    """The same for rows that name their columns."""
    columns = list(records[0]) if records else []
    return page_of(
        columns, [[record.get(name) for name in columns] for record in records], sql, page, further=0, **beside
    )


def _divided(sizes: Sequence[int]) -> Iterator[tuple[int, int]]:
    first, filled = 0, 0
    for place, size in enumerate(sizes):
        if filled and filled + size > _ROWS_BYTES:
            yield first, place
            first, filled = place, 0
        filled += size
    if sizes:
        yield first, len(sizes)


def _row_text(row: Row) -> str:
    cells = [_cell(json_value(value)) for value in row]
    text = _compact(cells)
    if len(text.encode()) <= _ROWS_BYTES:
        return text
    # A row of many long cells: each gets its share.
    share = max(60, _ROWS_BYTES // (2 * max(1, len(cells))) - 8)
    texts = [None if cell is None else cell if isinstance(cell, str) else _compact(cell) for cell in cells]
    return _compact([None if text is None else short_text(text, share) for text in texts])


def _cell(value: object) -> object:
    if isinstance(value, str):
        return short_text(value, _MOST_OF_A_CELL)
    text = _compact(value)
    return value if len(text) <= _MOST_OF_A_CELL else short_text(text, _MOST_OF_A_CELL)


def short_text(text: str, limit: int = _MOST_OF_A_TEXT) -> str:
    """A text whose JSON has at most `limit` bytes, with a mark where it was cut."""
    if len(_compact(text)) <= limit:
        return text
    kept = text[:limit]
    while len(_compact(kept)) > limit - 40:
        kept = kept[: len(kept) * 3 // 4]
    return f"{kept}… [{len(text) - len(kept)} more characters]"


def _compact(value: object) -> str:
    return json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
