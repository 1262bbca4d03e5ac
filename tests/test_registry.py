"""Plug-ins are the files of a folder."""

from pathlib import Path

import pytest

from traceforge.errors import PluginError
from traceforge.registry import discover, installed


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, request: pytest.FixtureRequest) -> Path:
    """An empty package, named after the test, that Python can import."""
    package = tmp_path / request.node.name
    package.mkdir()
    (package / "__init__.py").write_text("")
    monkeypatch.syspath_prepend(tmp_path)
    return package


def test_every_file_of_the_folder_is_a_plug_in_in_alphabetical_order(folder: Path) -> None:
    (folder / "wolf.py").write_text("ANIMAL = 'howls'\n")
    (folder / "duck.py").write_text("ANIMAL = 'quacks'\n")

    assert list(discover(folder.name, "ANIMAL").items()) == [("duck", "quacks"), ("wolf", "howls")]


def test_a_file_whose_name_starts_with_an_underscore_is_none(folder: Path) -> None:
    (folder / "_shared.py").write_text("")

    assert discover(folder.name, "ANIMAL") == {}


def test_a_file_without_the_object_is_named_with_what_it_lacks(folder: Path) -> None:
    (folder / "stone.py").write_text("MINERAL = 1\n")

    with pytest.raises(PluginError) as caught:
        discover(folder.name, "ANIMAL")

    assert str(caught.value) == (
        f"{folder.name}.stone: the plug-in does not define `ANIMAL`"
        "\n\nhint: every file of that folder must expose one object named `ANIMAL`"
    )


def declares(folder: Path, entry: str) -> None:
    """An installed package beside the folder that declares an entry point."""
    metadata = folder.parent / f"{folder.name}-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {folder.name}\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(f"[traceforge.animals]\n{entry}\n")


def test_an_installed_package_adds_plug_ins_by_an_entry_point(folder: Path) -> None:
    (folder / "wolf.py").write_text("ANIMAL = 'howls'\n")
    declares(folder, f"wolf = {folder.name}.wolf:ANIMAL")

    assert installed("traceforge.animals") == {"wolf": "howls"}


def test_an_entry_point_that_leads_nowhere_is_named(folder: Path) -> None:
    declares(folder, f"wolf = {folder.name}.wolf:ANIMAL")

    with pytest.raises(PluginError, match="entry point wolf"):
        installed("traceforge.animals")
