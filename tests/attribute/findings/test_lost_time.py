"""Who does what longer: losses drawn by hand."""

import pytest

from tests.attribute.findings.runs import lost


@pytest.mark.parametrize(
    ("longer", "slowest"),
    [(20, 1), (19, 0)],  # a fifth of the ranks' own work, and less
)
def test_who_is_slow_shows_in_hosts_where_these_explain_what_devices_wait(longer: float, slowest: int) -> None:
    # given rank 0, whose device waits longest for its host, and rank 1, whose host takes longer
    losses = lost({"late_launch": [[100.0, 40.0]] * 3})
    losses.host_ns[..., 0] = [0.0, longer]

    assert losses.slower([0]).mean(axis=0).argmax() == slowest


def test_of_hosts_that_were_not_looked_at_their_devices_tell() -> None:
    assert lost({"late_launch": [[100.0, 40.0]] * 3}).slower([0]).tolist() == [[100.0, 40.0]] * 3
