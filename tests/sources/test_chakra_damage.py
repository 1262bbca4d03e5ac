"""A damaged Chakra trace gives what is whole, counts what is not, and never a traceback."""

import gzip
import os
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.sources.chakra_wire import attribute, framed, metadata, node, varint
from tests.sources.execution_trace import TraceReading, read_chakra
from traceforge.errors import InputUnusableError
from traceforge.sources.chakra import SOURCE

HEAD = metadata("0.0.4")
NODES = [
    node(
        number,
        f"aten::operation_{number}",
        7 if number % 5 == 0 else 4,
        data=range(max(1, number - 3), number),
        duration_us=number,
        attributes=[attribute("is_cpu_op", "bool", number % 2 == 0), attribute("rf_id", "int64", 1000 + number)],
    )
    for number in range(1, 60)
]
CONTENT = framed(HEAD, *NODES)
STARTS = [len(framed(HEAD, *NODES[:count])) for count in range(len(NODES) + 1)]


def read_or_refuse(content: bytes, folder: Path) -> TraceReading | None:
    """What can be read; None where nothing can, which must be said by an error of ours."""
    try:
        return read_chakra(content, folder)
    except InputUnusableError:
        return None


# The id of node 22, read as a length, is that of the 22 bytes that are left: a name and a type, which make a node.
@example(cut=STARTS[21] + len(b"\x3b\x08\x16") + 22)
@given(cut=st.integers(1, len(CONTENT) - 1))
def test_a_cut_file_gives_every_node_before_the_cut(cut: int, tmp_path_factory: pytest.TempPathFactory) -> None:
    whole = sum(start <= cut for start in STARTS[1:])

    reading = read_or_refuse(CONTENT[:cut], tmp_path_factory.mktemp("cut"))

    if whole == 0:
        assert reading is None or reading.nodes == []
        return
    assert reading is not None
    assert reading.ids == list(range(1, whole + 1))
    assert reading.is_accounted
    assert ("chakra_truncated" in reading.codes) == (cut not in STARTS)
    assert reading.rows("file")[0]["is_complete"] == (cut in STARTS)


# A length that by chance leads to the end of a later frame costs the frames between.
@example(place=STARTS[1], byte=171)
@given(place=st.integers(len(framed(HEAD)), len(CONTENT) - 1), byte=st.integers(0, 255))
def test_one_wrong_byte_costs_little_and_is_counted(
    place: int, byte: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    damaged = CONTENT[:place] + bytes([byte]) + CONTENT[place + 1 :]

    reading = read_or_refuse(damaged, tmp_path_factory.mktemp("byte"))

    assert reading is not None
    assert reading.is_accounted
    lost, is_of_length = len(NODES) - len(reading.nodes), any(place - start in (0, 1) for start in STARTS)
    assert lost <= 8 or (is_of_length and reading.codes)


@given(junk=st.binary(min_size=1, max_size=400), after=st.integers(2, len(NODES) - 4))
def test_reading_goes_on_behind_bytes_that_are_no_node(
    junk: bytes, after: int, tmp_path_factory: pytest.TempPathFactory
) -> None:
    content = CONTENT[: STARTS[after]] + junk + CONTENT[STARTS[after] :]

    reading = read_or_refuse(content, tmp_path_factory.mktemp("junk"))

    assert reading is not None
    assert reading.is_accounted
    assert set(range(1, after + 1)) <= set(reading.ids)
    assert len(NODES) in reading.ids


@given(content=st.binary(max_size=3000))
def test_no_bytes_whatever_cause_anything_but_our_own_error(
    content: bytes, tmp_path_factory: pytest.TempPathFactory
) -> None:
    SOURCE.recognises(content)
    reading = read_or_refuse(content, tmp_path_factory.mktemp("any"))

    assert reading is None or reading.is_accounted


def test_a_cut_gzip_file_gives_the_nodes_before_the_damage(tmp_path: Path) -> None:
    noisy = [node(number, os.urandom(40).hex(), attributes=[attribute("rf_id", "int64", 1)]) for number in range(9000)]
    packed = gzip.compress(framed(HEAD, *noisy))

    reading = read_chakra(packed[: len(packed) * 2 // 3], tmp_path)

    assert len(reading.nodes) > 5000
    assert reading.ids == list(range(len(reading.nodes)))
    assert "chakra_damaged_compression" in reading.codes
    assert reading.is_accounted


def test_a_length_beyond_the_file_does_not_hide_what_follows(tmp_path: Path) -> None:
    content = CONTENT[: STARTS[20]] + varint(2**40) + CONTENT[STARTS[20] :]

    reading = read_chakra(content, tmp_path)

    assert len(reading.nodes) == len(NODES)
    assert "chakra_undecodable_node" in reading.codes


def test_an_id_that_no_column_holds_costs_its_edges_alone_and_is_counted(tmp_path: Path) -> None:
    # given the one id that is kept as NULL is, of a node and in dependencies, and the ids beside it
    odd = 2**63
    nodes = [node(1), node(odd), node(3, control=[odd, 1]), node(4, data=[odd - 1, odd, odd + 1])]

    reading = read_chakra(framed(HEAD, *nodes), tmp_path)

    assert reading.ids == [1, None, 3, 4]
    assert reading.edges == [(1, 3, "control"), (odd - 1, 4, "data"), (1 - odd, 4, "data")]
    assert reading.issue("chakra_out_of_range").count == 3
    assert reading.is_accounted
