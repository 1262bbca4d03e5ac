"""Telemetry is joined to ranks where something names the device, and its lag is told where the load has edges."""

import numpy as np
import pytest
from numpy.typing import NDArray

from traceforge.fabric.telemetry_lag import DeviceLoad, lag_of
from traceforge.fabric.telemetry_series import RankDevice, host_of, pci_key, rank_of

S = 1_000_000_000


def ranks(*devices: int | None, host: str = "n0", pci: str | None = None) -> list[RankDevice]:
    return [RankDevice(rank, host, number, f"GPU-{rank}a", pci_key(pci)) for rank, number in enumerate(devices)]


def device(**known: object) -> dict[str, object]:
    return {"source_id": None, "device": None, "uuid": None, "pci_address": None} | known


class TestRank:
    """Who computes on a device."""

    def test_a_uuid_goes_before_the_number(self) -> None:
        assert rank_of(device(device=0, uuid="gpu-1A"), "n0", ranks(0, 1)) == (1, "uuid")

    def test_the_number_counts_on_the_same_host_only(self) -> None:
        assert rank_of(device(device=1), "n0", ranks(0, 1)) == (1, "index")
        assert rank_of(device(device=1), "n1", ranks(0, 1)) == (None, None)
        assert rank_of(device(device=1), None, ranks(0, 1)) == (None, None)

    def test_a_host_may_be_written_with_its_domain(self) -> None:
        assert rank_of(device(device=1), "N0.cluster.local", ranks(0, 1)) == (1, "index")

    def test_ranks_that_all_see_a_device_0_are_not_told_apart_by_it(self) -> None:
        assert rank_of(device(device=0), "n0", ranks(0, 0)) == (None, None)

    def test_what_a_rank_reads_of_its_device_is_its_own_though_others_share_it(self) -> None:
        # given two ranks on device 0 of one address, and readings without a number in the second one's own file
        both = [RankDevice(rank, "n0", 0, None, pci_key("0000:1b:00.0"), source_id=rank) for rank in (0, 1)]
        own = device(source_id=1, pci_address="0000:1b:00.0")

        assert rank_of(own, "n0", both) == (1, "trace")

    def test_an_address_that_belongs_to_another_device_outweighs_the_number(self) -> None:
        own = ranks(0, pci="0000:1b:00.0")

        assert rank_of(device(device=0, pci_address="00000000:1B:00.0"), "n0", own) == (0, "pci")
        assert rank_of(device(device=0, pci_address="00000000:2B:00.0"), "n0", own) == (None, None)

    @pytest.mark.parametrize("text", [None, "", "1b", "zz:00.0", "0000:1b"])
    def test_what_is_no_address_is_none(self, text: str | None) -> None:
        assert pci_key(text) is None


class TestHost:
    """Where a file without a host comes from."""

    def test_it_is_the_host_that_the_path_names(self) -> None:
        both = [*ranks(0, host="node1"), *ranks(0, host="node10")]

        assert host_of("telemetry/nvidia-smi.node10.csv", None, both) == "node10"
        assert host_of("node1/smi.csv", None, both) == "node1"
        assert host_of("smi.csv", None, both) is None

    def test_it_is_the_only_host(self) -> None:
        assert host_of("smi.csv", None, ranks(0, 1)) == "n0"

    def test_it_is_the_host_of_the_rank_in_its_name(self) -> None:
        both = [RankDevice(0, "a", 0, None, None), RankDevice(1, "b", 0, None, None)]

        assert host_of("smi.csv", 1, both) == "b"


def load(pauses: list[tuple[float, float]], lag_s: float, interval_s: float = 0.1, until_s: float = 10) -> DeviceLoad:
    """A device that computes from 0 to 10 s but for pauses; read as power with some noise."""
    edges = np.array([0.0, *(edge for pause in pauses for edge in pause), 10.0]).reshape(-1, 2)
    starts, ends = (edges[:, n] * S for n in (0, 1))
    at: NDArray[np.int64] = np.rint(np.arange(0, until_s, interval_s) * S).astype(np.int64)
    power = DeviceLoad(at, at.astype(float), starts.astype(np.int64), ends.astype(np.int64))
    share = power.computed_share((at - lag_s * S).astype(float), interval_s * S)
    noise = np.random.default_rng(0).standard_normal(len(at))
    return DeviceLoad(at, 100 + 500 * share + 5 * noise, power.start_ns, power.end_ns)


class TestLag:
    """How much later a tool dates what the trace shows."""

    @pytest.mark.parametrize("lag_s", [-0.6, 0.0, 0.75])
    def test_pauses_of_different_lengths_tell_it(self, lag_s: float) -> None:
        fit = lag_of([load([(2, 2.5), (5, 6.2), (8, 8.3)], lag_s)], S // 10, 0, 10 * S)

        assert fit.is_sure
        assert abs(fit.lag_ns - lag_s * S) <= fit.step_ns

    def test_a_steady_load_tells_nothing(self) -> None:
        assert not lag_of([load([], 0.3)], S // 10, 0, 10 * S).is_sure

    def test_a_periodic_load_fits_at_many_lags(self) -> None:
        fit = lag_of([load([(n - 0.5, n) for n in range(1, 11)], 0.3)], S // 10, 0, 10 * S)

        assert fit.correlation is not None
        assert fit.rival is not None
        assert fit.correlation - fit.rival < 0.1
        assert not fit.is_sure

    def test_a_few_readings_tell_nothing(self) -> None:
        fit = lag_of([load([(2, 2.5), (5, 6.2)], 0, interval_s=1.0)], S, 0, 10 * S)

        assert (fit.is_sure, fit.correlation) == (False, None)

    def test_readings_that_do_not_follow_the_load_tell_nothing(self) -> None:
        one = load([(2, 2.5), (5, 6.2)], 0)
        noise = np.random.default_rng(1).standard_normal(len(one.value))

        assert not lag_of([DeviceLoad(one.at_ns, noise, one.start_ns, one.end_ns)], S // 10, 0, 10 * S).is_sure
