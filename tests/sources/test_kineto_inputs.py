"""Inputs of operations whose work can be counted: shapes, types and values as written, of nothing else."""

from typing import Any

from tests.sources.reading import Read

MM = {
    "External id": 5,
    "Input Dims": [[64, 32], [32, 16]],
    "Input type": ["float", "float"],
    "Concrete Inputs": ["", ""],
}


def operation(name: str, args: dict[str, Any], category: str = "cpu_op") -> dict[str, Any]:
    return {"ph": "X", "cat": category, "name": name, "pid": 1, "tid": 2, "ts": 5, "dur": 1, "args": args}


def test_shapes_types_and_values_are_kept_as_written(read_kineto: Read) -> None:
    events = [operation("aten::view", MM), operation("aten::mm", MM), operation("aten::mm", MM, "kernel")]

    reading = read_kineto({"traceEvents": events})

    assert reading.rows("operation_input") == [
        {"event_id": 1, "shapes": "[[64, 32], [32, 16]]", "types": '["float", "float"]', "concrete": '["", ""]'}
    ]


def test_without_a_list_of_shapes_there_is_no_row(read_kineto: Read) -> None:
    args: list[dict[str, Any]] = [{}, {"Input Dims": None}, {"Input Dims": "text"}, {"Input type": ["float"]}]

    reading = read_kineto({"traceEvents": [operation("aten::bmm", one) for one in args]})

    assert reading.rows("operation_input") == []
    assert len(reading.events) == 4


def test_what_older_profilers_leave_out_is_unknown(read_kineto: Read) -> None:
    old = {"Input Dims": [[8, 4], [4, 2]]}

    (row,) = read_kineto({"traceEvents": [operation("aten::mm", old, "Operator")]}).rows("operation_input")

    assert (row["types"], row["concrete"]) == (None, None)
