"""Times keep every digit: tokens in µs become int64 ns without a float on the way."""

from decimal import ROUND_HALF_EVEN, Decimal, localcontext

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from traceforge.sources.kineto.exact_time import LIMIT_NS, to_nanoseconds


def nanoseconds(*tokens: str) -> list[int | None]:
    times = to_nanoseconds("".join(f"{token}\n" for token in tokens).encode())
    return [int(value) if known else None for value, known in zip(times.values_ns, times.known, strict=True)]


@pytest.mark.parametrize(
    ("token", "expected_ns"),
    [
        ("1661938466265032", 1_661_938_466_265_032_000),  # PyTorch 2.0: whole µs since the epoch
        ("1712195495505582.988", 1_712_195_495_505_582_988),  # a float64 would say .0
        ("4458676983543.183", 4_458_676_983_543_183),  # relative to a base time
        ("0", 0),
        ("-0.5", -500),
        ("-12", -12_000),
        ("0.0004", 0),
        ("0.0005", 0),  # half rounds to even
        ("0.0015", 2),
        ("0.00050000000000000000001", 1),
        ("-0.0015", -2),
        ("1e3", 1_000_000),
        ("12.5E-1", 1_250),
        ('"123.456"', 123_456),
        ('"  7 "', 7_000),
        ("68.0", 68_000),
    ],
)
def test_one_token_becomes_exact_nanoseconds(token: str, expected_ns: int) -> None:
    assert nanoseconds(token) == [expected_ns]


def test_absent_and_null_tokens_are_unknown_but_no_mistakes() -> None:
    times = to_nanoseconds(b"\nnull\n5\n\n")
    assert times.known.tolist() == [False, False, True, False]
    assert times.unreadable == ()
    assert times.out_of_range == ()


def test_tokens_that_are_no_numbers_are_named_by_position() -> None:
    times = to_nanoseconds(b'1\n"soon"\ntrue\n"?"\n')
    assert times.known.tolist() == [True, False, False, False]
    assert times.unreadable == (1, 2, 3)


@pytest.mark.parametrize(
    "token", ["9223372036854775808", "1e400", "-99999999999999999999.5", "1e999999999", "4611686018427388"]
)
def test_times_beyond_146_years_are_out_of_range(token: str) -> None:
    times = to_nanoseconds(f"1\n{token}\n".encode())
    assert times.known.tolist() == [True, False]
    assert times.out_of_range == (1,)


def test_the_largest_time_still_fits() -> None:
    assert nanoseconds("4611686018427387.904") == [LIMIT_NS]


def decimal_nanoseconds(token: str) -> int | None:
    if token in ("", "null"):
        return None
    with localcontext() as context:
        context.prec = 500
        exact = (Decimal(token.strip('"')) * 1000).to_integral_value(ROUND_HALF_EVEN)
    return int(exact) if abs(exact) <= LIMIT_NS else None


digits = st.text("0123456789", min_size=1, max_size=24)
whole = st.integers(-(10**17), 10**17).map(str)
fractional = st.builds("{}.{}".format, whole, digits)
exponential = st.builds("{}e{}".format, st.one_of(whole, fractional), st.integers(-30, 30))
microseconds = st.builds("{}.{:03}".format, st.integers(10**15, 2 * 10**15), st.integers(0, 999))
plain = st.one_of(whole, fractional, st.just(""))
any_token = st.one_of(plain, exponential, st.just("null"), st.builds('"{}"'.format, fractional))


@examples(300)
@given(st.one_of(st.lists(microseconds), st.lists(whole), st.lists(plain), st.lists(any_token)))
def test_all_layouts_agree_with_decimal_arithmetic(tokens: list[str]) -> None:
    assert nanoseconds(*tokens) == [decimal_nanoseconds(token) for token in tokens]
