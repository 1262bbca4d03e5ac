"""A table of throughputs that somebody already has: CSV or TOML, with errors that name file and line."""

from pathlib import Path

import pytest

from traceforge.errors import InputUnusableError
from traceforge.forecast.points_file import read_points


def written(folder: Path, text: str, name: str = "points.csv") -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def test_a_csv_of_nodes_and_throughputs(tmp_path: Path) -> None:
    path = written(tmp_path, "nodes, throughput, cv\n# measured in May\n4, 1024, .02\n8, 1980, .04\n")

    points = read_points(path)

    assert [(p.ranks, p.throughput, p.cv, p.error) for p in points] == [(4, 1024, 0.02, None), (8, 1980, 0.04, None)]


def test_a_toml_with_facts_to_compare(tmp_path: Path) -> None:
    text = '[[point]]\nname = "may"\nranks = 4\nthroughput = 1024.0\ndtype = "BFloat16"\nbatch = 32\n'

    (point,) = read_points(written(tmp_path, text, "points.toml"))

    assert (point.name, point.facts) == ("may", {"batch": 32, "dtype": "bfloat16"})


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("ranks,throughput\n4,fast\n", "line 2: `throughput` is no number: fast"),
        ("ranks,throughput\n4,100\n8,\n", "line 3: the column `throughput` is absent or empty"),
        ("ranks,throughput\n2.5,100\n", "ranks must be whole"),
        ("ranks,throughput\n4,0\n", "throughput above 0"),
        ("ranks,throughput\n4,nan\n", "is no number: nan"),
        ("ranks,throughput\n-4,100\n", "`ranks` is no number: -4"),
        ("a,b\n4,100\n", "the column `ranks` is absent or empty"),
        ("ranks,throughput\n", "holds no point"),
        ("", "holds no point"),
    ],
)
def test_a_value_that_is_none_is_named_with_its_line(tmp_path: Path, text: str, said: str) -> None:
    with pytest.raises(InputUnusableError) as caught:
        read_points(written(tmp_path, text))
    assert said in str(caught.value)
    assert "points.csv" in str(caught.value)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("points.toml", b"ranks = ", "no TOML"),
        ("points.toml", b"point = 3", "holds no tables [[point]]"),
        ("points.csv", b"\xff\xfe\x00", "is no text"),
        ("points.csv", b'ranks,throughput\n4,"' + b"9" * 200_000, "no CSV"),
    ],
)
def test_what_is_no_table_is_refused(tmp_path: Path, name: str, content: bytes, said: str) -> None:
    path = tmp_path / name
    path.write_bytes(content)
    with pytest.raises(InputUnusableError, match=said.replace("[", r"\[").replace("]", r"\]")):
        read_points(path)


def test_a_file_that_is_not_there_is_said_so(tmp_path: Path) -> None:
    with pytest.raises(InputUnusableError, match="cannot be read"):
        read_points(tmp_path / "none.csv")
