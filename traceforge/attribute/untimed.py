"""What is said of a run without times of ranks. In: its state and what was read. Out: sentences of the verdict.

Execution traces tell what ranks issue and how large it is; topologies and telemetry tell of machines. None tells when.
NCCL's Inspector tells how far apart ranks came to a call, and no more.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from traceforge.attribute.findings.subjects import ranks_said
from traceforge.store.database import Store
from traceforge.thresholds import attribute, fabric
from traceforge.units import format_ns, listed, plural

State = Mapping[str, Any]

# Communicators of execution traces, the largest first.
_VOLUMES = """
SELECT
  CASE
    WHEN call_count % rank_count = 0 THEN FORMAT('{:,} calls', call_count // rank_count)
    ELSE FORMAT('on average {:,.2f} calls', call_count / rank_count)
  END
  || COALESCE(' of together ' || FORMATREADABLEDECIMALSIZE(sent_bytes // rank_count), ' of unknown size')
  || ' a rank in ' || COALESCE('group “' || LEFT(communicator, 40) || '”', 'groups without a name')
FROM graph.volume
WHERE run_id = ?
ORDER BY sent_bytes DESC NULLS LAST, call_count DESC
LIMIT 3
"""

# Ranks whose recording holds fewer calls than those of others, and nothing else that differs.
_SHORTER = """
SELECT
  'Rank ' || rank || ' records ' || call_count || IF(call_count = 1, ' call', ' calls') || ' fewer than others in '
  || COALESCE('group “' || LEFT(process_group, 40) || '”', 'a group without a name')
  || ': its recording begins later or ends earlier, or it skips ' || IF(call_count = 1, 'one.', 'some.')
FROM graph.divergence
WHERE run_id = ? AND status = 'shorter' AND rank IS NOT NULL AND call_count > 0
ORDER BY call_count DESC, rank, process_group
LIMIT 1
"""

_ABSENT = "SELECT rank FROM graph.absent_rank WHERE run_id = ? ORDER BY rank"

# Communication that execution traces record but that is in no volume, and why: unknown ranks first.
_NOT_COMPARED = """
WITH called AS (
  SELECT t.rank, c.group_size
  FROM graph.trace AS t
  JOIN raw.chakra_communication AS c USING (source_id, part)
  WHERE t.run_id = ? AND NOT c.is_wait AND c.origin <> 'kernel'
  UNION ALL
  -- Nodes that only their type tells to communicate.
  SELECT t.rank, NULL
  FROM graph.trace AS t
  JOIN raw.chakra_node AS n USING (source_id, part)
  WHERE t.run_id = ? AND n.node_type IN ('COMM_COLL', 'COMM_SEND', 'COMM_RECV')
    AND NOT EXISTS (
      SELECT 1 FROM raw.chakra_communication AS c
      WHERE c.source_id = n.source_id AND c.part = n.part AND c.position = n.position
    )
)
SELECT COUNT(*), COUNT(*) FILTER (rank IS NULL), COUNT(*) FILTER (group_size = 1)
FROM called
"""

# Files without times of ranks, by kind.
_WITHOUT_TIMES = "SELECT kind, COUNT(*) FROM meta.source WHERE run_id = ? GROUP BY kind ORDER BY kind"
_READ_OF = MappingProxyType(
    {
        "nccl_topology": "of machines' topology (raw.nccl_topology_node)",
        "telemetry": "of devices' telemetry (raw.telemetry_sample)",
    }
)

# What NCCL's Inspector timed; of the communicator whose ranks waited longest, who came last most often.
_MEASURED = """
WITH whole AS (
  SELECT comm_hash, rank_count, skew_ns, last_rank, COALESCE(last_global_rank, last_rank) AS rank,
    last_global_rank IS NULL AS is_local
  FROM fabric.measured
  WHERE run_id = $1 AND last_rank IS NOT NULL AND comm_hash IS NOT NULL
),
communicator AS (
  SELECT comm_hash, rank_count, COUNT(*) AS calls, CAST(MEDIAN(skew_ns) AS BIGINT) AS skew_ns
  FROM whole
  GROUP BY comm_hash, rank_count
  ORDER BY SUM(skew_ns) DESC, comm_hash
  LIMIT 1
),
latest AS (
  SELECT rank, is_local, COUNT(*) AS times
  FROM whole
  JOIN communicator USING (comm_hash, rank_count)
  GROUP BY rank, is_local
  ORDER BY times DESC, rank
  LIMIT 1
)
SELECT (SELECT COUNT(*) FROM fabric.measured WHERE run_id = $1) AS timed, c.comm_hash, c.calls, c.skew_ns, l.*
FROM (SELECT 1) LEFT JOIN communicator AS c ON true LEFT JOIN latest AS l ON true
"""
_BENCHMARKS = """
SELECT COUNT(*) FROM raw.nccl_bench AS b JOIN meta.source AS s USING (source_id) WHERE s.run_id = ?
"""


def of_graphs(store: Store, state: State) -> str:
    """Size of execution traces, and what is known of their communication."""
    volumes = store.query(_VOLUMES, [state["run_id"]]).to_series().to_list()
    volumes = volumes or [_not_compared(store, state["run_id"])]
    moved = "; ".join(volumes)
    modelled = " Durations in them are a generator's, not measured." if state["is_modelled"] else ""
    shorter = "".join(f" {said}" for (said,) in store.rows(_SHORTER, [state["run_id"]]))
    read = f"Read: {plural(state['graph_traces'], 'trace')} of {state['graph_nodes']:,} nodes; {moved}."
    return f"{read}{_absent(store, state['run_id'])}{shorter}{modelled}"


def _absent(store: Store, run_id: int) -> str:
    """Ranks that groups list and that have no file; empty where all have one."""
    absent = [rank for (rank,) in store.rows(_ABSENT, [run_id])]
    return f" The process groups list {ranks_said(absent)} as well, of which there is no file." if absent else ""


def _not_compared(store: Store, run_id: int) -> str:
    """What there is of communication where no volume is known."""
    ((calls, of_unknown_ranks, of_one_rank),) = store.query(_NOT_COMPARED, [run_id, run_id]).rows()
    if not calls:
        return "they record no communication"
    if of_unknown_ranks == calls:
        why = "no file says which rank it is of"
    elif of_one_rank == calls:
        why = "all in groups of one rank, which move nothing"
    else:
        why = "operation, group or rank of each are not stated"
    return f"they record {plural(calls, 'call')} of communication, none of which can be compared: {why}"


def of_what_was_read(store: Store, run_id: int) -> str:
    """What was read of a run without a timeline, and where it stands; empty where that is nothing of its own."""
    found = [(count, _READ_OF[kind]) for kind, count in store.rows(_WITHOUT_TIMES, [run_id]) if kind in _READ_OF]
    told = listed([f"{plural(count, 'file')} {what}" for count, what in found]) if found else ""
    ((benchmarks,),) = store.rows(_BENCHMARKS, [run_id])
    sentences = (
        f"Read: {told}, which tell no times of ranks." if told else "",
        f"Read: {plural(benchmarks, 'row')} of nccl-tests (raw.nccl_bench), which tell of no job."
        if benchmarks
        else "",
        _of_inspector(store, run_id),
    )
    return " ".join(filter(None, sentences))


def of_latest_rank(store: Store, state: State, told: Mapping[str, Any]) -> dict[str, object]:
    """The rank that comes last to most of what NCCL's Inspector timed; nothing where there is none, or a timeline."""
    if state["state"] not in ("no_timeline", "logs_alone"):
        return {}
    (row,) = store.query(_MEASURED, [state["run_id"]]).to_dicts()
    if (row["calls"] or 0) < fabric.LEAST_STAMPED_CALLS or row["skew_ns"] < fabric.LEAST_LATE_NS:
        return {}
    if row["times"] < attribute.LEADING_SHARE * row["calls"]:
        return {}
    said = (
        f"ank {row['rank']} comes last to {row['times']} of {plural(row['calls'], 'collective')} of communicator "
        f"{str(row['comm_hash'])[:40]}, by NCCL's Inspector {format_ns(row['skew_ns'])} behind the first (median)"
    )
    if state["state"] == "logs_alone" and state["problems"]:
        return {"explanation": f"R{said}. {told['explanation']}"}
    unknown = "What it costs the job, and why it is late, only a timeline shows."
    return {
        "headline": f"R{said}: the others wait for it.",
        "explanation": f"{unknown} {told['explanation']}",
        "next_step": f"See what rank {row['rank']} does before it communicates: record torch.profiler on it and on "
        "others in the same steps, and give the folder that holds them.",
    }


def _of_inspector(store: Store, run_id: int) -> str:
    """How far apart ranks came to what NCCL's Inspector timed; whether that is chance is not judged."""
    (row,) = store.query(_MEASURED, [run_id]).to_dicts()
    if not row["timed"]:
        return ""
    timed = f"NCCL's Inspector timed {plural(row['timed'], 'collective')}"
    if row["calls"] is None:
        return f"{timed}, none of them on all ranks of its communicator."
    rank = f"rank {row['rank']}{' within it' if row['is_local'] else ''}"
    return (
        f"{timed}: in communicator {str(row['comm_hash'])[:40]} the last rank came {format_ns(row['skew_ns'])} behind "
        f"the first (median), most often {rank}, in {row['times']} of {plural(row['calls'], 'call')}."
    )
