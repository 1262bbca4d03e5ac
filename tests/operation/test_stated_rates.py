"""Rates of the hardware as a user states them: their units, what is refused, and when stages are built anew."""

import pytest

from tests.given import MS, Trace, store_of
from traceforge.errors import UsageError
from traceforge.operation.stated_rates import parsed_rates, stated_rates
from traceforge.replay.assumptions import are_assumed, assume
from traceforge.store.database import Store


def test_arithmetic_is_stated_in_teraflops_and_everything_else_in_gigabytes() -> None:
    rates = parsed_rates(["bf16=989", "memory=3350"], ["link=450", "nic=12.5"])

    assert rates == {"bf16": 989e12, "memory": 3350e9, "link": 450e9, "nic": 12.5e9}


def test_nothing_stated_is_not_the_same_as_no_rates() -> None:
    assert parsed_rates([], []) is None


def test_of_two_statements_the_last_counts() -> None:
    assert parsed_rates([], ["nic=50", "nic=25"]) == {"nic": 25e9}


@pytest.mark.parametrize(
    ("peaks", "line_rates", "message"),
    [
        (["bf8=1"], [], "--peak: 'bf8=1' names no rate that is known"),
        (["nic=50"], [], "--peak: 'nic=50' names no rate"),  # one of --line-rate
        ([], ["nic"], "--line-rate: 'nic' has no positive number"),
        ([], ["nic=fast"], "has no positive number"),
        ([], ["nic=0"], "has no positive number"),
        ([], ["nic=-1"], "has no positive number"),
        ([], ["nic=nan"], "has no positive number"),
        ([], ["nic=inf"], "has no positive number"),
    ],
)
def test_what_is_no_rate_is_refused(peaks: list[str], line_rates: list[str], message: str) -> None:
    with pytest.raises(UsageError) as caught:
        parsed_rates(peaks, line_rates)

    assert message in f"{caught.value.where}: {caught.value.what}"
    assert "=VALUE" in str(caught.value.hint)


@pytest.fixture
def store() -> Store:
    """A database whose stages are built as far as anybody asked."""
    store = store_of(Trace().step(0, 0, MS).kernel(0, MS))
    store.execute("INSERT INTO meta.build VALUES ('1.0', 'hash')")
    return store


def builds(store: Store) -> int:
    return int(store.value("SELECT COUNT(*) FROM meta.build"))


def test_other_rates_have_the_stages_built_anew(store: Store) -> None:
    assume(store, rates={"nic": 25e9})

    assert builds(store) == 0
    assert stated_rates(store) == {"nic": 25e9}


def test_the_same_rates_keep_the_stages(store: Store) -> None:
    store.execute("INSERT INTO meta.stated_rate VALUES ('nic', 25e9), ('link', 450e9)")

    assume(store, rates={"nic": 25e9})
    assume(store)

    assert builds(store) == 1
    assert are_assumed(store, None, {"nic": 25e9})
    assert not are_assumed(store, None, {"nic": 50e9})
    assert not are_assumed(store, None, {"bf16": 1e12})
