"""Clocks and load that Nsight Systems samples become readings of devices, as those of nvidia-smi are."""

from tests.sources.nsys_exports import EPOCH, Export, export, kernel, read
from traceforge.sources.nsys import NsysSource

__all__ = ["export"]
MS = 1_000_000
NAMES = {0: "GPC Clock Frequency [MHz]", 5: "SMs Active [Throughput %]", 9: "PCIe RX Throughput [Throughput %]"}
# the device's number stands in the lowest byte
TYPE = 0x01_00_00_00_01


def sample(at_ns: int, metric: int, value: object) -> dict[str, object]:
    return {"timestamp": at_ns, "typeId": TYPE, "metricId": metric, "value": value}


def exported(export: Export, *samples: dict[str, object]) -> list[tuple[object, ...]]:
    """By time within the session: sample, metric, device, its UUID, and value; of the first part alone."""
    path = export(
        TARGET_INFO_SESSION_START_TIME=[{"utcEpochNs": EPOCH}],
        TARGET_INFO_GPU=[{"cuDevice": number, "uuid": f"GPU-{number}"} for number in (0, 1)],
        TARGET_INFO_GPU_METRICS=[{"typeId": TYPE, "metricId": n, "metricName": name} for n, name in NAMES.items()],
        GPU_METRICS=list(samples),
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2), kernel(1, 2, 8, deviceId=1)],
    )
    first, second = NsysSource().parts(path)
    assert read(path, second).rows("telemetry_sample") == []
    reading = read(path, first)
    series = {row["series_id"]: row for row in reading.rows("telemetry_series")}
    return [
        (row["raw_at_ns"] - EPOCH, row["sample"], series[row["series_id"]]["metric"],
         series[row["series_id"]]["device"], series[row["series_id"]]["uuid"], row["value"])
        for row in reading.rows("telemetry_sample")
    ]  # fmt: skip


def test_samples_are_means_of_10_ms_and_hertz_are_no_megahertz(export: Export) -> None:
    # given two samples of the clock in the first 10 ms, in Hz, and one of each metric in the next
    found = exported(
        export, sample(1 * MS, 0, 1_400_000_000), sample(9 * MS, 0, 1_440_000_000), sample(12 * MS, 0, 1_755),
        sample(12 * MS, 5, 97),
    )  # fmt: skip

    assert found == [
        (10 * MS, 0, "sm_clock_mhz", 1, "GPU-1", 1420.0),
        (20 * MS, 1, "sm_clock_mhz", 1, "GPU-1", 1755.0),
        (20 * MS, 1, "sm_active_share", 1, "GPU-1", 0.97),
    ]


def test_other_metrics_are_counted(export: Export) -> None:
    path = export(
        TARGET_INFO_GPU_METRICS=[{"typeId": TYPE, "metricId": n, "metricName": name} for n, name in NAMES.items()],
        GPU_METRICS=[sample(1, 9, 3), sample(2, 9, 3), sample(3, 0, 1_755)],
        CUPTI_ACTIVITY_KIND_KERNEL=[kernel(1, 2)],
    )

    assert "(GPU_METRICS 2)" in read(path).issue("nsys_tables_not_read").detail


def test_odd_values_cost_their_sample(export: Export) -> None:
    assert exported(export, sample(1, 0, "fast"), sample(1, 77, 5), {**sample(1, 0, 1_755), "timestamp": None}) == []
