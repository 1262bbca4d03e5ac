"""Tables of the report: an optional column stands only where it has something to say."""

from traceforge.report.table import Table, TableColumn, number

_COLUMNS = (TableColumn("name", lambda row: row[0]), number("TFLOP/s", lambda row: row[1], optional=True))


def test_an_optional_column_is_left_out_where_all_its_cells_are_empty() -> None:
    table = Table.of([("gemm", "—"), ("add", "—")], _COLUMNS)

    assert [column.title for column in table.columns] == ["name"]
    assert table.rows == [["gemm"], ["add"]]


def test_an_optional_column_stays_where_one_cell_holds_something() -> None:
    table = Table.of([("gemm", "112"), ("add", "—")], _COLUMNS)

    assert [column.title for column in table.columns] == ["name", "TFLOP/s"]
    assert table.rows == [["gemm", "112"], ["add", "—"]]
