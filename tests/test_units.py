"""Quantities as people read them: three digits and a unit."""

import pytest

from traceforge.units import format_bytes, format_ns, format_share, listed, ordinal, times


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_000, "1.00 µs"),
        (12_345, "12.3 µs"),
        (1_250_000, "1.25 ms"),
        (123_400_000, "123 ms"),
        (61_000_000_000, "61.0 s"),
        (-1_250_000, "-1.25 ms"),
    ],
)
def test_a_duration_has_three_digits_and_the_unit_that_fits(duration_ns: int, text: str) -> None:
    assert format_ns(duration_ns) == text


@pytest.mark.parametrize(
    ("duration_ns", "text"), [(999_999, "1.00 ms"), (9_999, "10.0 µs"), (99_960, "100 µs"), (999_999_999, "1.00 s")]
)
def test_a_duration_that_rounds_up_to_the_next_power_still_has_three_digits(duration_ns: int, text: str) -> None:
    assert format_ns(duration_ns) == text


@pytest.mark.parametrize(
    ("size_bytes", "text"),
    [(512, "512 B"), (4_096, "4.10 kB"), (25_000_000, "25.0 MB"), (2_500_000_000, "2.50 GB"), (3.35e12, "3.35 TB")],
)
def test_a_size_uses_decimal_prefixes(size_bytes: int, text: str) -> None:
    assert format_bytes(size_bytes) == text


@pytest.mark.parametrize(("share", "text"), [(0, "0.0 %"), (0.0123, "1.2 %"), (0.5, "50 %"), (-0.25, "-25 %")])
def test_a_small_share_keeps_one_decimal(share: float, text: str) -> None:
    assert format_share(share) == text


@pytest.mark.parametrize(
    ("calls", "text"),
    [(0, "never"), (0.3, "less than once"), (0.6, "once"), (1.4, "once"), (2, "2 times"), (1234.0, "1,234 times")],
)
def test_how_often_a_call_comes_is_a_word_up_to_one(calls: float, text: str) -> None:
    assert times(calls) == text


@pytest.mark.parametrize(("names", "text"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")])
def test_names_stand_in_a_sentence_with_an_and_before_the_last(names: list[str], text: str) -> None:
    assert listed(names) == text


def test_an_ordinal_ends_as_it_is_spoken() -> None:
    numbers = (1, 2, 3, 4, 11, 12, 13, 21, 102, 111)

    assert " ".join(map(ordinal, numbers)) == "1st 2nd 3rd 4th 11th 12th 13th 21st 102nd 111th"
