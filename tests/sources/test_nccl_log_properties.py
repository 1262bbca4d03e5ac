"""Whatever stands around records, and however a log is cut into blocks, no valid record is lost and none invented."""

from collections.abc import Callable

from hypothesis import given
from hypothesis import strategies as st

from tests.examples import examples
from tests.sources.nccl_logs import HEAD, LogReading, call, init

ReadLog = Callable[..., LogReading]

VALID = (
    init(),
    call(),
    call(op="ReduceScatter", elements=7),
    call(prefix="[1,0]<stdout>:"),
    call(prefix="[2026-03-03 12:11:38.25] "),
    HEAD + "AllReduce: 33554432 Bytes -> Algo RING proto SIMPLE channel{Lo..Hi}={0..31}",
    HEAD + "Channel 00/0 : 3[3] -> 4[0] [send] via NET/IB/2(0)/GDRDMA",
    HEAD + "NCCL_IB_HCA set by environment to mlx5_0",
)
RULES = (
    "communicator",
    "collective_call",
    "collective_call",
    "collective_call",
    "collective_call",
    "tuning",
    "link",
    "environment",
)
# Garbage that cannot itself be a record, and does not end the line it stands in.
garbage = st.binary(max_size=60).filter(lambda data: b"CCL" not in data and b"#" not in data)
numbers = st.lists(st.integers(0, len(VALID) - 1), min_size=1, max_size=12)


@examples(60)
@given(chosen=numbers, noise=st.lists(garbage, min_size=13, max_size=13))
def test_random_bytes_between_records_lose_none_of_them(
    read_log: ReadLog, chosen: list[int], noise: list[bytes]
) -> None:
    lines: list[str | bytes] = [noise[0]]
    for number, junk in zip(chosen, noise[1:], strict=False):
        lines += [VALID[number], junk]

    log = read_log(*lines)

    assert [rule for rule in log.rules if rule != "bench"] == [RULES[number] for number in chosen]
    assert log.summary.event_count == log.summary.stored_count == len(chosen)


@examples(40)
@given(chosen=numbers, block_bytes=st.integers(16, 700))
def test_rows_do_not_depend_on_how_the_log_is_cut_into_blocks(
    read_log: ReadLog, chosen: list[int], block_bytes: int
) -> None:
    lines = [VALID[number] for number in chosen]
    whole, cut = read_log(*lines), read_log(*lines, block_bytes=block_bytes)

    for table in ("record", "collective_call", "tuning", "link", "communicator", "process", "file"):
        assert cut.rows(table) == whole.rows(table)


@examples(40)
@given(data=st.binary(max_size=400), place=st.integers(0, 200))
def test_a_damaged_record_never_raises_and_never_takes_its_neighbours_along(
    read_log: ReadLog, data: bytes, place: int
) -> None:
    victim = VALID[1].encode()
    damaged = (victim[:place] + data + victim[place + len(data) :]).replace(b"\n", b" ")

    log = read_log(VALID[7], damaged, VALID[7])

    assert [row["value"] for row in log.rows("environment")].count("mlx5_0") >= 2


@examples(40)
@given(counts=st.lists(st.integers(0, 10**12), min_size=1, max_size=30))
def test_many_calls_at_once_give_the_numbers_that_one_by_one_gives(read_log: ReadLog, counts: list[int]) -> None:
    lines = [call(elements=count, op_count=index) for index, count in enumerate(counts)]

    fast = read_log(*lines, block_bytes=300)

    rows = fast.rows("collective_call")
    assert [row["element_count"] for row in rows] == counts
    assert [row["size_bytes"] for row in rows] == [4 * count for count in counts]
    assert [row["op_count"] for row in rows] == list(range(len(counts)))


@examples(30)
@given(
    # Runs of calls within one second, of one call or many: the seconds go on, stand still, or jump back and forth.
    runs=st.lists(st.tuples(st.integers(0, 59), st.integers(1, 150)), min_size=1, max_size=5),
    form=st.sampled_from(
        (
            "[2026-03-03 12:11:{:02}.{:06}] ",
            "12:11:{:02}.{:06} ",
            "[2026-03-03 12:11:{:02}] ",
            "2026-03-03T12:11:{:02}.{:06}000Z stdout F ",
        )
    ),
)
def test_stamps_are_exact_however_seconds_follow_one_another(
    read_log: ReadLog, runs: list[tuple[int, int]], form: str
) -> None:
    shown = [(second, 7 * number) for second, count in runs for number in range(count)]
    log = read_log(*(call(prefix=form.format(*stamp)) for stamp in shown))

    times = [row["raw_time_ns"] for row in log.rows("record")]
    base = times[0] - shown[0][0] * 1_000_000_000
    fraction = 1_000 if "." in form else 0
    assert times == [base + second * 1_000_000_000 + us * fraction for second, us in shown]
    assert base % 60_000_000_000 == 0


@examples(30)
@given(lengths=st.lists(st.integers(1, 560), min_size=1, max_size=8), ends=st.lists(st.integers(0, 7), max_size=40))
def test_known_heads_of_any_length_are_never_taken_for_one_another(
    read_log: ReadLog, lengths: list[int], ends: list[int]
) -> None:
    # given host names that share their beginnings, so that heads differ late, early or in length alone
    hosts = ["n" + "x" * (length % 200) + "abc"[length % 3] + "y" * (length // 9) for length in lengths]
    chosen = [hosts[number % len(hosts)] for number in ends]

    log = read_log(*(call(host=host, elements=number) for number, host in enumerate(chosen)), block_bytes=512)

    processes = {row["process_id"]: row["host"] for row in log.rows("process")}
    assert [processes[row["process_id"]] for row in log.rows("record")] == chosen
