"""What is said of a run without times of ranks. In: its state and what was read. Out: sentences of the verdict.

Execution traces tell what ranks issue and how large it is; topologies and telemetry tell of machines. None tells when.
"""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from traceforge.store.database import Store
from traceforge.units import listed, plural

State = Mapping[str, Any]

# Communicators of execution traces, the largest first.
_VOLUMES = """
SELECT
  FORMAT('{:,} calls', CAST(ROUND(call_count / rank_count) AS BIGINT))
  || COALESCE(' of together ' || FORMATREADABLEDECIMALSIZE(sent_bytes // rank_count), ' of unknown size')
  || ' a rank in ' || COALESCE('group “' || LEFT(communicator, 40) || '”', 'groups without a name')
FROM graph.volume
WHERE run_id = ?
ORDER BY sent_bytes DESC NULLS LAST, call_count DESC
LIMIT 3
"""

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


def of_graphs(store: Store, state: State) -> str:
    """Size of execution traces, and what is known of their communication."""
    volumes = store.query(_VOLUMES, [state["run_id"]]).to_series().to_list()
    volumes = volumes or [_not_compared(store, state["run_id"])]
    moved = "; ".join(volumes)
    modelled = " Durations in them are a generator's, not measured." if state["is_modelled"] else ""
    return f"Read: {plural(state['graph_traces'], 'trace')} of {state['graph_nodes']:,} nodes; {moved}.{modelled}"


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
    return f"Read: {told}, which tell no times of ranks." if told else ""
