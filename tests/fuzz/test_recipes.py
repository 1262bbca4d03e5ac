"""Small recipes of attack end as promised in every run of the suite; `python -m tests.fuzz.recipes` runs all."""

import pytest

from tests.fuzz.recipes import RECIPES, ran

SMALL = (
    "a database whose view reads /etc/passwd",
    "pickle with a huge memo index",
    "pickle of nested lists",
)


@pytest.mark.parametrize("name", SMALL)
def test_an_attack_ends_as_promised(name: str) -> None:
    row, is_fine = ran(name, *RECIPES[name])

    assert is_fine, row
