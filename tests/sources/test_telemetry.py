"""Telemetry of nvidia-smi, dcgmi and Prometheus: the same series under the same names, and nothing lost in silence."""

import json
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from tests.sources.reading import Reading
from traceforge.errors import InputUnusableError
from traceforge.records import Batch, ReadOptions
from traceforge.sources.telemetry import SOURCE

# 2026-09-11 04:19:41 UTC
SECOND_NS = 1_789_100_381_000_000_000
QUERY = """\
timestamp, index, uuid, clocks.sm [MHz], power.draw [W], clocks_event_reasons.active, pstate, utilization.gpu [%]
2026/09/11 04:19:41.982, 0, GPU-aa, 1410 MHz, 699.80 W, 0x0000000000000004, P0, 98 %
2026/09/11 04:19:41.986, 1, GPU-bb, 1755 MHz, [N/A], 0x0000000000000000, P0, 100 %
"""
DMON = """\
#Entity   SMCLK  DVCCTR  POWER    GPUTL
ID
GPU 0     1410   4       699.800  98
GPU 1     1755   0       N/A      100
"""


def exported(name: str, value: object, **labels: str) -> dict[str, object]:
    labels = {"gpu": "0", "UUID": "GPU-aa", "Hostname": "n0", "instance": "n0:9400"} | labels
    return {"metric": {"__name__": name, **labels}, "values": [[1789100381.982, value]]}


def answer(*series: object) -> str:
    return json.dumps({"status": "success", "data": {"resultType": "matrix", "result": list(series)}})


def read(tmp_path: Path, text: str) -> Reading:
    path = tmp_path / "telemetry"
    path.write_bytes(text.encode("utf-8", "surrogateescape"))
    assert SOURCE.recognises(path.read_bytes()[: 256 * 1024])
    batches: list[Batch] = []
    return Reading(SOURCE.read(path, batches.append, ReadOptions()), batches)


def measured(reading: Reading) -> list[tuple[object, ...]]:
    """Metric, device, reading, time after the second and value of every sample."""
    series = {row["series_id"]: row for row in reading.rows("telemetry_series")}
    return sorted(
        (
            series[row["series_id"]]["metric"],
            series[row["series_id"]]["device"],
            row["sample"],
            None if row["raw_at_ns"] is None else row["raw_at_ns"] - SECOND_NS,
            row["value"],
        )
        for row in reading.rows("telemetry_sample")
    )


def test_nvidia_smi_says_when_each_device_was_read(tmp_path: Path) -> None:
    reading = read(tmp_path, QUERY)

    assert measured(reading) == [
        ("busy_share", 0, 0, 982_000_000, 0.98),
        ("busy_share", 1, 0, 986_000_000, 1.0),
        ("power_w", 0, 0, 982_000_000, 699.8),
        ("sm_clock_mhz", 0, 0, 982_000_000, 1410.0),
        ("sm_clock_mhz", 1, 0, 986_000_000, 1755.0),
        ("throttle_reasons", 0, 0, 982_000_000, 4.0),
        ("throttle_reasons", 1, 0, 986_000_000, 0.0),
    ]
    assert {(row["uuid"], row["time_basis"]) for row in reading.rows("telemetry_series")} == {
        ("GPU-aa", "local"),
        ("GPU-bb", "local"),
    }
    assert reading.codes == ["telemetry_columns_not_read", "telemetry_no_value"]
    assert "pstate" in reading.issue("telemetry_columns_not_read").detail
    assert (reading.summary.event_count, reading.summary.stored_count) == (2, 2)


def test_dcgmi_prints_the_same_without_times(tmp_path: Path) -> None:
    reading = read(tmp_path, DMON)

    expected = [
        (metric, device, sample, None, value) for metric, device, sample, _, value in measured(read(tmp_path, QUERY))
    ]
    assert measured(reading) == expected
    assert reading.codes == ["telemetry_no_value", "telemetry_no_time"]


def test_an_older_dcgmi_heads_its_table_with_a_space(tmp_path: Path) -> None:
    reading = read(tmp_path, "# Entity  SMACT  SMCLK\n      Id\n    GPU 1  0.873  1410\n")

    assert measured(reading) == [("sm_active_share", 1, 0, None, 0.873), ("sm_clock_mhz", 1, 0, None, 1410.0)]


def test_reasons_that_have_a_column_each_are_one_quantity(tmp_path: Path) -> None:
    # given a power cap (4) and a slowdown for heat (64), then nothing, then a device that tells of neither
    head = "timestamp, index, clocks_throttle_reasons.sw_power_cap, clocks_throttle_reasons.hw_thermal_slowdown\n"
    said = ["Active, Active", "Not Active, [N/A]", "[N/A], [N/A]"]
    reading = read(tmp_path, head + "".join(f"2026/09/11 04:19:41.982, 0, {one}\n" for one in said))

    assert [one[4] for one in measured(reading)] == [68.0, 0.0]
    assert reading.codes == ["telemetry_no_value"]


@pytest.mark.parametrize("written", ["2026-09-11 04:19:41.982", "2026-09-11T04:19:41.982"])
def test_times_that_somebody_wrote_anew_are_read(tmp_path: Path, written: str) -> None:
    reading = read(tmp_path, f"timestamp, index, clocks.gr [MHz]\n{written}, 0, 1410 MHz\n")

    assert measured(reading) == [("sm_clock_mhz", 0, 0, 982_000_000, 1410.0)]


def test_a_header_that_comes_again_is_no_row(tmp_path: Path) -> None:
    readings = [read(tmp_path, text) for text in (DMON + DMON, QUERY + QUERY)]

    assert [reading.summary.event_count for reading in readings] == [4, 4]
    assert [max(row[2] for row in measured(reading)) for reading in readings] == [1, 1]


def test_a_header_that_comes_again_is_said_once(tmp_path: Path) -> None:
    text = DMON.replace("GPUTL", "FANSP")

    assert read(tmp_path, text + text).issue("telemetry_columns_not_read").count == 1


@pytest.mark.parametrize("value", ["nan", "inf", "1e999", "0xq"])
def test_a_value_that_is_no_number_is_counted(tmp_path: Path, value: str) -> None:
    reading = read(tmp_path, DMON + f"GPU 0     {value}   4       600.0    98\n")

    # given one value besides: the power of device 1
    assert reading.issue("telemetry_no_value").count == 2
    assert len(measured(reading)) == 7 + 3


@pytest.mark.parametrize(
    "text",
    [QUERY, DMON, answer(exported("DCGM_FI_DEV_SM_CLOCK", "1"), exported("DCGM_FI_DEV_SM_CLOCK", "1", gpu="1"))],
    ids=["nvidia_smi", "dcgm", "prometheus"],
)
def test_series_beyond_what_any_job_has_are_counted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, text: str) -> None:
    monkeypatch.setattr("traceforge.reading.telemetry_series.MOST_SERIES", 1)

    reading = read(tmp_path, text)

    assert reading.issue("telemetry_too_many_series").count > 0
    assert len(reading.rows("telemetry_series")) == 1
    assert {row["series_id"] for row in reading.rows("telemetry_sample")} == {0}


def test_prometheus_names_host_device_and_nic(tmp_path: Path) -> None:
    nic = {"metric": {"__name__": "node_infiniband_port_data_received_bytes_total", "device": "mlx5_0", "port": "1"}}
    nic["metric"]["instance"] = "n0:9100"
    text = answer(exported("DCGM_FI_DEV_SM_CLOCK", "1410"), nic | {"value": [1789100381, "12"]})

    reading = read(tmp_path, text)

    assert measured(reading) == [
        ("nic_received_bytes", None, 0, 0, 12.0),
        ("sm_clock_mhz", 0, 0, 982_000_000, 1410.0),
    ]
    named = [(row["host"], row["uuid"], row["nic"]) for row in reading.rows("telemetry_series")]
    assert named == [("n0", "GPU-aa", None), ("n0", None, "mlx5_0 port 1")]


@pytest.mark.parametrize(
    ("labels", "host"),
    [
        ({"Hostname": "dcgm-exporter-x7k", "node": "n3", "instance": "10.0.0.3:9400"}, "n3"),
        ({"Hostname": "dcgm-exporter-x7k", "kubernetes_node": "n3", "pod": "train-0"}, "n3"),
        ({"Hostname": "n3", "instance": "10.0.0.3:9400"}, "n3"),
        ({"Hostname": "", "instance": "n3:9400"}, "n3"),
    ],
)
def test_the_host_is_the_node_and_not_the_pod_of_the_exporter(
    tmp_path: Path, labels: dict[str, str], host: str
) -> None:
    (series,) = read(tmp_path, answer(exported("DCGM_FI_DEV_SM_CLOCK", "1", **labels))).rows("telemetry_series")

    assert series["host"] == host


def test_metrics_that_nobody_asks_for_are_counted_by_name(tmp_path: Path) -> None:
    reading = read(tmp_path, answer(exported("up", "1"), {"metric": {}, "values": [[1, "2"], [2, "2"]]}))

    assert reading.issue("telemetry_metrics_not_read").count == 3
    assert "(without a name) 2, up 1" in reading.issue("telemetry_metrics_not_read").detail


@pytest.mark.parametrize(
    ("damage", "code", "seen", "kept"),
    [
        (QUERY + "2026/09/11 04:19:42.0, 0, GPU-aa, 14", "telemetry_unreadable_line", 3, 2),
        (QUERY + "yesterday, 0, GPU-aa, 1 MHz, 1 W, 0x0000000000000004, P0, 1 %\n", "telemetry_unreadable_line", 3, 2),
        (QUERY + "x" * 70_000 + "\n", "telemetry_too_long_line", 3, 2),
        (DMON + "GPU 0     1410\n", "telemetry_unreadable_line", 3, 2),
        (DMON + "GPU-I 0   1  1  1  1\n", "telemetry_other_entities", 3, 2),
        (DMON + "y" * 70_000, "telemetry_too_long_line", 3, 2),
        (answer(exported("DCGM_FI_DEV_SM_CLOCK", "fast")), "telemetry_unreadable_sample", 1, 0),
        (answer(exported("DCGM_FI_DEV_SM_CLOCK", "NaN")), "telemetry_no_value", 1, 0),
        (answer({"metric": 7}), "telemetry_unreadable_series", 1, 0),
    ],
)
def test_what_cannot_be_read_is_counted_and_the_rest_kept(
    tmp_path: Path, damage: str, code: str, seen: int, kept: int
) -> None:
    reading = read(tmp_path, damage)

    assert (reading.summary.event_count, reading.summary.stored_count) == (seen, kept)
    assert reading.issue(code).lost_events == seen - kept


def test_a_reason_cut_off_at_the_end_of_a_file_is_no_reason(tmp_path: Path) -> None:
    # given a file that ends within the bits, so that they look like none
    text = "index, clocks.sm [MHz], clocks_throttle_reasons.active\n0, 1410 MHz, 0x00000000"

    assert [row[0] for row in measured(read(tmp_path, text))] == ["sm_clock_mhz"]


def test_of_two_columns_for_one_quantity_the_better_is_read(tmp_path: Path) -> None:
    text = "index, power.draw [W], power.draw.instant [W]\n0, 300 W, 700 W\n"

    assert measured(read(tmp_path, text)) == [("power_w", 0, 0, None, 700.0)]


def test_an_answer_that_is_cut_off_is_refused_with_the_reason(tmp_path: Path) -> None:
    with pytest.raises(InputUnusableError, match="damaged"):
        read(tmp_path, answer(exported("DCGM_FI_DEV_SM_CLOCK", "1"))[:-9])


@pytest.mark.parametrize(
    "head",
    [
        b'{"traceEvents": [], "resultType": 1, "data": {"result": 2}}',
        b"a, b, c\n1, 2, 3",
        b"index, name\n",
        b"",
        b"#Ent",
    ],
)
def test_other_files_are_not_taken_for_telemetry(head: bytes) -> None:
    assert not SOURCE.recognises(head)


@given(cut=st.integers(0, 400), noise=st.binary(max_size=40), place=st.integers(0, 400), which=st.integers(0, 1))
@example(cut=0, noise=b"\x1f\x8b", place=0, which=0)  # a text that begins as a packed file does
def test_no_damage_ends_in_anything_but_rows_and_issues(
    tmp_path_factory: pytest.TempPathFactory, cut: int, noise: bytes, place: int, which: int
) -> None:
    whole = (QUERY * 2, DMON * 2)[which].encode()
    text = (whole[:place] + noise + whole[place:])[: len(whole) - cut]
    if not SOURCE.recognises(text):
        return
    path = tmp_path_factory.mktemp("telemetry") / "file"
    path.write_bytes(text)

    batches: list[Batch] = []
    try:
        summary = SOURCE.read(path, batches.append, ReadOptions())
    except InputUnusableError:
        # Only what looks packed, and cannot be unpacked, is refused.
        assert text.startswith((b"\x1f\x8b", b"\x28\xb5\x2f\xfd")) or text[1:4] == b"\x2a\x4d\x18"
        return
    reading = Reading(summary, batches)

    lost = sum(issue.lost_events for issue in reading.summary.issues)
    assert reading.summary.event_count == reading.summary.stored_count + lost
    assert {row["series_id"] for row in reading.rows("telemetry_sample")} <= {
        row["series_id"] for row in reading.rows("telemetry_series")
    }


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-be", "utf-8-sig"])
@pytest.mark.parametrize(
    "text", [QUERY, DMON, answer(exported("DCGM_FI_DEV_SM_CLOCK", "1"))], ids=["nvidia_smi", "dcgm", "prometheus"]
)
def test_text_that_a_shell_encoded_anew_says_the_same(tmp_path: Path, text: str, encoding: str) -> None:
    # given what PowerShell writes for `nvidia-smi … > file`: UTF-16 with a mark, and lines that end in CR LF
    mark = "\ufeff" if encoding == "utf-16-be" else ""
    path = tmp_path / "telemetry"
    path.write_bytes((mark + text.replace("\n", "\r\n")).encode(encoding))

    assert SOURCE.recognises(path.read_bytes()[:4096])
    batches: list[Batch] = []
    reading = Reading(SOURCE.read(path, batches.append, ReadOptions()), batches)

    plain = read(tmp_path, text)
    assert measured(reading) == measured(plain) != []
    assert reading.codes == plain.codes


def test_a_table_with_semicolons_and_decimal_commas_says_the_same(tmp_path: Path) -> None:
    # given what a spreadsheet makes of the file where commas are decimal
    head, *rows = QUERY.replace(", ", ";").splitlines()

    reading = read(tmp_path, "\n".join([head, *(row.replace(".", ",") for row in rows)]))

    assert measured(reading) == measured(read(tmp_path, QUERY))


@pytest.mark.parametrize("nothing", ["[N/A]", "N/A", "[Not Supported]", "[Unknown Error]", "[GPU requires reset]", ""])
def test_a_value_that_a_device_does_not_give_is_none(tmp_path: Path, nothing: str) -> None:
    reading = read(tmp_path, f"index, clocks.sm [MHz], power.draw [W]\n0, 1410 MHz, {nothing}\n")

    assert measured(reading) == [("sm_clock_mhz", 0, 0, None, 1410.0)]
    assert reading.issue("telemetry_no_value").count == 1
