"""What is kept between processes is used only where it is whole and nobody else's, and never needed."""

from collections.abc import Callable
from pathlib import Path

import pytest

from traceforge.report.bundle import page_script, timeline_script
from traceforge.report.kept_text import kept_text

NAME = "vega-1.js"


class Maker:
    """Makes texts and counts them."""

    def __init__(self) -> None:
        self.made = 0

    def __call__(self) -> str:
        self.made += 1
        return f"script {self.made}\r\nwith ünïcode\n"


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return tmp_path / "cache" / "traceforge"


def test_a_text_is_made_once_and_comes_back_to_the_byte(cache: Path) -> None:
    make = Maker()

    first, second = kept_text(NAME, make), kept_text(NAME, make)

    assert first == second == "script 1\r\nwith ünïcode\n"
    assert [path.name for path in cache.iterdir()] == [NAME]


def test_another_name_is_another_text(cache: Path) -> None:
    make = Maker()
    kept_text(NAME, make)
    assert kept_text("vega-2.js", make).startswith("script 2")
    assert len(list(cache.iterdir())) == 2


def cut(file: Path) -> None:
    file.write_bytes(file.read_bytes()[:-1])


def change(file: Path) -> None:
    file.write_bytes(file.read_bytes().replace(b"script", b"scrapt"))


def empty(file: Path) -> None:
    file.write_bytes(b"")


def no_text(file: Path) -> None:
    file.write_bytes(b"\xff\xfe")


def others_may_write_it(file: Path) -> None:
    file.chmod(0o666)


def others_may_write_beside_it(file: Path) -> None:
    file.parent.chmod(0o777)


def link(file: Path) -> None:
    file.rename(file.parent.parent / "elsewhere")
    file.symlink_to(file.parent.parent / "elsewhere")


@pytest.mark.parametrize("harm", [cut, change, empty, no_text, others_may_write_it, others_may_write_beside_it, link])
def test_what_is_damaged_or_may_be_another_persons_is_not_used(cache: Path, harm: Callable[[Path], None]) -> None:
    make = Maker()
    kept_text(NAME, make)

    harm(cache / NAME)

    assert kept_text(NAME, make).startswith("script 2")


def test_where_nothing_can_be_kept_the_text_is_made_each_time(cache: Path) -> None:
    make = Maker()
    cache.parent.write_text("a file where the folder would be")

    assert [kept_text(NAME, make)[:8] for _ in range(2)] == ["script 1", "script 2"]
    assert cache.parent.is_file()


def test_a_place_that_is_no_full_path_is_not_taken(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("XDG_CACHE_HOME", "here")
    monkeypatch.setenv("HOME", str(tmp_path / "home"))

    kept_text(NAME, Maker())

    assert [path.name for path in tmp_path.iterdir()] == ["home"]


def test_our_own_scripts_travel_without_comments_line_ends_or_the_drawing_library() -> None:
    # given sources of 99 kB; the drawing library alone would add 900 kB
    scripts = [timeline_script(), page_script()]

    assert sum(map(len, scripts)) < 72_000
    assert not any("/**" in script or "\n" in script.rstrip("\n") for script in scripts)
