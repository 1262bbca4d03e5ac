"""Files of the NCCL Inspector. In: a job that was run. Out: one file a rank, a JSON object a collective.

As output format 4.0 (NCCL 2.28) writes them: what a rank's kernel took, from its own arrival on, and a number that
counts within communicator and operation. Not written: send and receive, events of channels.
"""

import json
from collections.abc import Iterator

from traceforge.synth.cluster import Group
from traceforge.synth.nccl_log import OPERATIONS, comm_hash, groups_of
from traceforge.synth.scenario import SimulatedJob

_BASE_US = 1_735_689_600_000_000 + 10_000_000


def inspector_files(job: SimulatedJob) -> Iterator[tuple[str, str]]:
    """Name and text of each file."""
    cluster = job.scenario.cluster
    for rank in range(cluster.ranks):
        lines = "".join(f"{json.dumps(line)}\n" for line in _lines(job, rank))
        if lines:
            yield f"nccl_inspector.{cluster.host_of(rank)}.{1_000 + rank}.jsonl", lines


def _lines(job: SimulatedJob, rank: int) -> Iterator[dict[str, object]]:
    groups = {group.kind: group for group in job.scenario.cluster.groups() if rank in group.ranks}
    # The barrier before training was the first all-reduce of the communicator of all ranks.
    first = groups_of(job.scenario)[0]
    numbers = {
        (group.kind, op): int(group == first and op == "all_reduce") for group in groups.values() for op in OPERATIONS
    }
    taken = job.events.device_end_ns - job.events.device_start_ns
    for i in range(job.scenario.iterations):
        for n, operation in enumerate(job.program_of(rank)):
            if operation.collective in OPERATIONS and operation.group in groups and not operation.parts:
                group = groups[operation.group]
                end_us = int(job.events.device_end_ns[i, n, rank]) // 1_000
                yield {
                    **_head(job, group, rank, end_us),
                    "coll_perf": _performance(
                        OPERATIONS[operation.collective],
                        numbers[operation.group, operation.collective],
                        operation.size_bytes,
                        float(taken[i, n, rank]),
                        len(group.ranks),
                    ),
                }
                numbers[operation.group, operation.collective] += 1


def _head(job: SimulatedJob, group: Group, rank: int, end_us: int) -> dict[str, object]:
    cluster = job.scenario.cluster
    return {
        "header": {
            "id": f"{comm_hash(job.scenario, group):#x}", "rank": group.ranks.index(rank), "n_ranks": len(group.ranks),
            "nnodes": len(set(map(cluster.node_of, group.ranks))),
        },
        "metadata": {
            "inspector_output_format_version": "v4.0", "git_rev": "", "rec_mechanism": "nccl_profiler_interface",
            "dump_timestamp_us": _BASE_US + end_us, "hostname": cluster.host_of(rank), "pid": 1_000 + rank,
        },
    }  # fmt: skip


def _performance(op: str, number: int, size_bytes: int, taken_ns: float, members: int) -> dict[str, object]:
    algorithm = size_bytes / max(taken_ns, 1)  # bytes a ns are GB/s
    return {
        "coll": op, "coll_sn": number, "coll_msg_size_bytes": size_bytes, "coll_exec_time_us": taken_ns / 1e3,
        "coll_timing_source": "kernel_gpu", "coll_algobw_gbs": round(algorithm, 6),
        "coll_busbw_gbs": round((1 + (op == "AllReduce")) * (members - 1) / members * algorithm, 6),
    }  # fmt: skip
