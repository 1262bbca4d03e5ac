"""What a job bound by communication is told: which, how fast it is, and what the hardware allows."""

import itertools

import pytest

from tests.fabric.logs import Process, add_logs
from tests.given import MS, US, Trace, built, rows_of, store_of
from tests.stories import Run, told
from traceforge.operation.stated_rates import parsed_rates, state_rates
from traceforge.store.database import Store

ASKED = ("attribute.bottleneck", "attribute.bound", "attribute.line_rate")
H100 = "NVIDIA H100 80GB HBM3"
BOUND = "SELECT bound, sentence, next_step FROM attribute.bound WHERE rank IS NULL"
PARTS = """
SELECT bound, duration_ns_per_iteration FROM attribute.bottleneck
WHERE rank IS NULL AND duration_ns_per_iteration IS NOT NULL ORDER BY place
"""
RATES = "SELECT op, crosses_hosts, bus_bandwidth_bytes_per_s / 1e9, basis FROM attribute.line_rate ORDER BY op"


def job(elements: int, transfer_ns: int, hosts: str = "aa", device: str = H100, op: str = "allreduce") -> list[Trace]:
    """Six steps of two ranks: half a ms of work, then an all-reduce of `elements` floats.

    |kernel 500 us|all-reduce|
    """
    ranks = list(range(len(hosts)))
    traces = [Trace(rank, host=host, groups=[("0", "dp", ranks)]).on_device(device) for rank, host in enumerate(hosts)]
    for trace in traces:
        for number in range(6):
            start = number * (500 * US + transfer_ns)
            done = start + 500 * US
            trace.step(number, start, done + transfer_ns).kernel(start, done)
            trace.collective(done, done + transfer_ns, op=op, group="0", ranks=ranks, elements=elements)
    return traces


def of_all(*traces: Trace) -> Run:
    return told(*traces, world_size=max(2, len(traces)))


def stated(*traces: Trace, peaks: tuple[str, ...] = (), line_rates: tuple[str, ...] = ()) -> Store:
    store = store_of(*traces, world_size=max(2, len(traces)))
    state_rates(store, parsed_rates(peaks, line_rates) or {})
    return built(store, *ASKED)


def with_nics(traces: list[Trace], hosts: str, mbit_per_s: int, of_last: int | None = None) -> Store:
    """Logs beside the traces: each host has one NIC; that of the last may be of another speed."""
    store = store_of(*traces, world_size=len(traces))
    processes = [Process(rank, host=host).init() for rank, host in enumerate(hosts)]
    for process in processes:
        speed = of_last if of_last and process is processes[-1] else mbit_per_s
        process.says(
            f"NET/IB: [0] mlx5_0:uverbs0:1/IB provider=Mlx5 speed={speed} context=0x5 pciPath=/sys/x ar=0",
            "NET/IB : Using [0]mlx5_0:1/IB [RO]; OOB eth0:10.0.0.1<0>",
        )
    add_logs(store, processes)
    return built(store, *ASKED)


def test_inside_a_host_communication_is_held_against_the_links_of_the_device() -> None:
    # 120 MB in 1 ms of four ranks are 180 GB/s on the bus (x 2 x 3 / 4): 40 % of 450 GB/s.
    store = of_all(*job(30_000_000, MS, "aaaa"))

    assert rows_of(store, PARTS)[:2] == [("communication_bound", 600 * US), ("communication_at_line_rate", 400 * US)]
    basis = "SELECT basis FROM attribute.bottleneck WHERE rank IS NULL AND bound = 'communication_bound'"
    assert "for longer than it would at the line rate" in str(rows_of(store, basis))
    ((bound, sentence, _),) = rows_of(store, BOUND)
    assert bound == "communication_bound"
    assert str(sentence).startswith("Communication-bound: for 67 % of each 1.50 ms step")
    assert str(sentence).endswith(
        "All of that communication is all_reduce (dp, 4 ranks): 120 MB a call (median) at 180 GB/s bus "
        f"bandwidth, 40 % of line rate (450 GB/s: links of {H100})."
    )


def test_where_some_calls_tell_no_ranks_the_share_is_of_those_that_do() -> None:
    # Only kernels: |compute 500 us|send_recv 500 us|all_reduce 1 ms|, in a job that lists a pipeline.
    groups = [("0", "dp", [0, 1]), ("1", "pp", [0, 1]), ("2", "tp", [0]), ("3", "tp", [1])]
    traces = [Trace(rank, groups=groups) for rank in range(2)]
    for trace, number in itertools.product(traces, range(6)):
        start = number * 2 * MS
        trace.step(number, start, start + 2 * MS).kernel(start, start + 500 * US)
        trace.kernel(start + 500 * US, start + MS, "ncclDevKernel_SendRecv(ncclDevKernelArgsStorage<4096ul>)")
        trace.kernel(start + MS, start + 2 * MS, "ncclDevKernel_AllReduce_Sum_f32_RING_LL(ncclDevKernelArgs)")

    ((_, sentence, _),) = rows_of(of_all(*traces), BOUND)

    said = "All of that communication, as far as its ranks are known, is all_reduce (dp, 2 ranks); its bytes were not"
    assert said in str(sentence)


def test_two_devices_of_a_host_may_share_few_of_their_links() -> None:
    # Two of eight H100 reach each other by all links, two of four wired in pairs do not: not known which these are.
    ((_, sentence, _),) = rows_of(of_all(*job(45_000_000, MS)), BOUND)

    assert "The line rate is not known; --line-rate states it" in str(sentence)


def test_faster_than_the_line_rate_is_no_share_of_it() -> None:
    ((_, sentence, _),) = rows_of(stated(*job(45_000_000, MS), line_rates=("link=100",)), BOUND)

    assert "180 GB/s bus bandwidth, no less than line rate (100 GB/s" in str(sentence)


def test_across_hosts_it_is_held_against_the_nics_that_logs_state() -> None:
    # One NIC of 400 Gbit/s a host, one rank a host: 50 GB/s; 12.5 MB in 1 ms are a quarter of it.
    store = with_nics(job(3_125_000, MS, "ab"), "ab", 400_000)

    assert rows_of(store, RATES) == [("all_reduce", True, 50.0, "1 NIC a host with 50 GB/s, by the logs")]
    ((_, sentence, step),) = rows_of(store, BOUND)
    assert " at 12.5 GB/s bus bandwidth, 25 % of line rate" in str(sentence)
    assert "look for what slows it" in str(step)


def test_where_nics_of_hosts_differ_the_slowest_hosts_set_the_line_rate_and_are_named() -> None:
    # One NIC of 400 Gbit/s on host a, one of 100 on host b: 12.5 MB in 1 ms are all that b can do.
    store = with_nics(job(3_125_000, MS, "ab"), "ab", 400_000, of_last=100_000)

    basis = "NICs of host b with 12.5 GB/s for all its ranks, where others have 50, by the logs"
    assert rows_of(store, RATES) == [("all_reduce", True, 12.5, basis)]


@pytest.mark.parametrize(
    ("op", "limit"),
    [
        ("allreduce", 50.0),  # a ring crosses once from each host, with the shares of both its ranks
        ("all_to_all", 37.5),  # of three peers two lie on the other host: 25 x 3 / 2
    ],
)
def test_ranks_of_a_host_share_its_nic(op: str, limit: float) -> None:
    kernel_free = job(3_125_000, MS, "aabb", op=op)

    ((_, crosses, rate, _),) = rows_of(with_nics(kernel_free, "aabb", 400_000), RATES)

    assert (crosses, rate) == (True, limit)


def test_what_the_user_states_goes_before_documents() -> None:
    store = stated(*job(45_000_000, MS), line_rates=("link=200", "nic=10"))

    assert rows_of(store, RATES) == [("all_reduce", False, 200.0, "as stated with --line-rate link")]
    ((_, _, step),) = rows_of(store, BOUND)
    assert str(step).startswith("It runs near line rate: overlap it")


def test_short_calls_are_told_to_be_short() -> None:
    # 20 kB in 50 us; the step must be bound by them, so that the kernel takes less.
    traces = [Trace(rank, groups=[("0", "dp", [0, 1])]).on_device(H100) for rank in (0, 1)]
    for trace in traces:
        trace.step(0, 0, 60 * US).kernel(0, 10 * US)
        trace.collective(10 * US, 60 * US, group="0", ranks=[0, 1], elements=5_000)

    ((_, sentence, step),) = rows_of(of_all(*traces), BOUND)

    assert "20.0 kB a call (median) at 400 MB/s bus bandwidth" in str(sentence)
    assert str(step).startswith("Its calls are short")


def test_without_a_line_rate_the_runs_own_fastest_call_stands_beside() -> None:
    store = of_all(*job(45_000_000, MS, device="a device nobody knows"))

    ((_, sentence, step),) = rows_of(store, BOUND)
    assert str(sentence).endswith(
        " at 180 GB/s bus bandwidth, at best 180 GB/s. The line rate is not known; --line-rate states it."
    )
    assert "line rate" not in str(step)
    assert "communication_at_line_rate" not in dict(rows_of(store, PARTS))


def test_of_one_rank_the_pace_is_a_lower_bound() -> None:
    store = of_all(job(45_000_000, MS)[0])

    ((_, sentence, _),) = rows_of(store, BOUND)
    assert "180 MB a call (median) at 180 GB/s bus bandwidth or more (waiting for other ranks is in it)" in str(
        sentence
    )


def test_of_a_group_of_which_one_member_is_known_the_pace_is_not() -> None:
    # given 180 MB a call, of which nobody knows to how many ranks they went
    store = of_all(job(45_000_000, MS, hosts="a")[0])

    ((_, sentence, _),) = rows_of(store, BOUND)
    assert str(sentence).endswith("180 MB a call (median); its pace is not known.")


def test_of_several_communicators_of_one_name_the_ranks_are_told() -> None:
    # given two pairs of data parallel ranks, of which the second one's all-reduce takes twice as long
    traces = []
    for group, ranks, transfer_ns in (("0", [0, 1], 1 * MS), ("1", [2, 3], 2 * MS)):
        for rank in ranks:
            trace = Trace(rank, groups=[(group, "dp", ranks)]).on_device(H100)
            for number in range(6):
                start = number * 3 * MS
                trace.step(number, start, start + 3 * MS).kernel(start, start + 500 * US)
                trace.collective(
                    start + 500 * US, start + 500 * US + transfer_ns, group=group, ranks=ranks, elements=30_000_000
                )
            traces.append(trace)

    sentences = dict(rows_of(of_all(*traces), "SELECT rank, sentence FROM attribute.bound"))

    assert "(dp, ranks 2, 3)" in str(sentences[None])
    assert "(dp, ranks 2, 3)" in str(sentences[2])


def test_calls_without_bytes_have_no_pace() -> None:
    traces = job(45_000_000, MS)
    for trace in traces:
        for call in trace.collectives:
            call["in_elements"] = call["out_elements"] = None

    ((_, sentence, _),) = rows_of(of_all(*traces), BOUND)

    assert str(sentence).endswith("its bytes were not recorded.")


def test_a_peak_that_is_stated_makes_arithmetic_known() -> None:
    # 2 * 4096^3 FLOP at 100 TFLOP/s take 1.374 ms of the 2 ms that the product lasts.
    trace = Trace().step(0, 0, 2 * MS).on_device("a device nobody knows")
    trace.operation("aten::mm", 0, 10 * US, [[4096, 4096], [4096, 4096]], ["c10::Half"] * 2)
    trace.kernel(0, 2 * MS, "gemm", launch_ns=0)

    parts = dict(rows_of(stated(trace, peaks=("bf16=100", "memory=1000")), PARTS))

    assert parts["ideal"] == 1_374_390
