"""Numbers and lists as a reader meets them."""

import pytest

from traceforge.report.formatting import (
    cautious_percent,
    change,
    clean,
    count,
    duration,
    duration_range,
    listed,
    lowered,
    minus_signs,
    named_ranks,
    percent,
    plural,
    rank_list,
    significant,
)
from traceforge.report.scaling_figures import fitted


def plain(text: str | None) -> str | None:
    return None if text is None else text.replace("\N{NO-BREAK SPACE}", " ").replace("\N{NARROW NO-BREAK SPACE}", " ")


@pytest.mark.parametrize(
    ("duration_ns", "text"),
    [
        (0, "0 ns"),
        (999, "999 ns"),
        (1_500, "1.50 µs"),
        (40_100_000, "40.1 ms"),
        (-2_000_000, "\N{MINUS SIGN}2.00 ms"),
        (None, "—"),
    ],
)
def test_durations_carry_three_digits_and_a_unit(duration_ns: float | None, text: str) -> None:
    assert plain(duration(duration_ns)) == text


def test_a_range_has_one_unit() -> None:
    assert plain(duration_range(950_000, 45_200_000)) == "0.95 to 45.2 ms"
    assert plain(duration_range(-500_000, 2_000_000)) == "\N{MINUS SIGN}0.50 to 2.00 ms"
    assert duration_range(None, 5) is None


def test_parameters_of_a_fit_are_durations_and_numbers_without_exponents() -> None:
    assert plain(fitted("local_s=0.0259,latency_s=1.39e-05,growth=0.2514,kappa=2.5e-06,overlap_s=0")) == (
        "local 25.9 ms, latency 13.9 µs, growth 0.2514, kappa 0.0000025, overlap 0 ns"
    )
    assert fitted("") == ""


@pytest.mark.parametrize(
    ("ratio", "text"),
    [
        (1.031, "+3.1 %"),
        (0.96, "\N{MINUS SIGN}4.0 %"),
        (1.187, "+19 %"),
        (1.0001, "±0.0 %"),
        (0.9999, "±0.0 %"),
        (None, "—"),
    ],
)
def test_a_ratio_is_told_as_a_change(ratio: float | None, text: str) -> None:
    assert plain(change(ratio)) == text


@pytest.mark.parametrize(
    ("share", "text"), [(0.131, "13 %"), (0.004, "0.4 %"), (-0.05, "\N{MINUS SIGN}5.0 %"), (-1e-6, "0.0 %")]
)
def test_small_shares_keep_a_decimal_and_nothing_is_minus_zero(share: float, text: str) -> None:
    assert plain(percent(share)) == text


def test_nouns_and_lists_read_as_sentences() -> None:
    assert plain(plural(1, "rank")) == "1 rank"
    assert plain(plural(12_345, "rank")) == "12 345 ranks"
    assert plural(2, "policy", "policies") == "2 policies"
    assert listed([]) == ""
    assert listed(["a"]) == "a"
    assert listed(["a", "b", "c"]) == "a, b and c"
    assert listed(list("abcdefg"), 3) == "a, b, c and 4 more"
    assert plain(count(-1_000)) == "-1 000"


def test_ranks_are_told_as_runs() -> None:
    assert rank_list([3, 0, 1, 2, 7, 9, 9, 10]) == "0-3, 7, 9-10".replace("-", "\N{EN DASH}")
    assert rank_list(range(0, 100, 2)).endswith("22, …")


def test_a_label_inside_a_sentence_keeps_its_capitals_where_they_belong() -> None:
    assert lowered("Slow compute, rank 2") == "slow compute, rank 2"
    assert lowered("GPU locality") == "GPU locality"


@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("aten::mm", "aten::mm"),
        ("größe 漢字 🚀", "größe 漢字 🚀"),
        ("a\x1b[31mb", "a\N{REPLACEMENT CHARACTER}[31mb"),
        ("a\N{RIGHT-TO-LEFT OVERRIDE}b", "a\N{REPLACEMENT CHARACTER}b"),
        ("a\N{ZERO WIDTH SPACE}b", "a\N{REPLACEMENT CHARACTER}b"),
        ("a\udc80b", "a\N{REPLACEMENT CHARACTER}b"),
        ("two\nlines\tand a tab", "two lines and a tab"),
    ],
)
def test_names_lose_what_turns_hides_or_commands_and_nothing_else(name: str, shown: str) -> None:
    assert clean(name) == shown


def test_a_long_name_keeps_its_ends() -> None:
    assert clean("a" * 50 + "b" * 50, 11) == "aaaaa…bbbbb"


def test_ranks_are_named_in_the_number_that_they_have() -> None:
    assert named_ranks([3]) == "rank 3"
    assert named_ranks([3, 5, 6, 7]) == "ranks 3, 5\N{EN DASH}7"


def test_negative_numbers_of_a_text_get_a_true_minus_and_words_keep_their_hyphens() -> None:
    assert minus_signs("0.5 (-1.84 to 2): stream-1, 2-9, all-reduce") == (
        "0.5 (\N{MINUS SIGN}1.84 to 2): stream-1, 2-9, all-reduce"
    )


@pytest.mark.parametrize(
    ("value", "shown"),
    [
        (0.0215, "0.0215"),
        (0.05, "0.05"),
        (0.456, "0.46"),
        (0.9246, "0.92"),
        (0.9996, "1.00"),
        (1.5, "1.50"),
        (0.0, "0.00"),
    ],
)
def test_a_small_number_keeps_digits_that_tell_it_from_others(value: float, shown: str) -> None:
    assert significant(value) == shown


@pytest.mark.parametrize(("share", "shown"), [(1.0, "100 %"), (0.99999, "99.9 %"), (0.5, "50.0 %"), (0.0, "0.0 %")])
def test_a_hundred_per_cent_is_said_only_of_all(share: float, shown: str) -> None:
    assert cautious_percent(share).replace("\N{NO-BREAK SPACE}", " ") == shown
