"""Whether NCCL's logs speak of the job that the timelines show, and of all of it. Adds to meta.issue.

Reads fabric.communicator, fabric.member, fabric.link, align.membership, align.call and timeline.communicator. Idea: a
log states how many ranks a communicator has, whoever printed it; so a job whose devices meet in a larger one is another
job.
Not handled: logs of another job of the same size.
"""

from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

OTHER_JOB = "nccl_log_other_job"

# Communicators of devices whose members the timeline states: groups that are inferred may be larger than they are.
_REACH = """
WITH called AS (
  SELECT DISTINCT m.run_id, m.communicator_id, m.rank
  FROM align.membership AS m
  JOIN align.call AS c USING (run_id, rank, call_id)
  WHERE c.on_device
),
timed AS (
  SELECT c.run_id, MAX(t.size) FILTER (t.origin = 'stated') AS largest, COUNT(DISTINCT c.rank) AS ranks
  FROM called AS c
  JOIN timeline.communicator AS t USING (run_id, communicator_id)
  GROUP BY ALL
),
logged AS (
  SELECT run_id, MAX(rank_count) AS largest FROM fabric.communicator GROUP BY ALL
),
member AS (
  SELECT run_id, COUNT(DISTINCT process) AS processes FROM fabric.member GROUP BY ALL
)
SELECT t.run_id, t.largest, l.largest AS logged, t.ranks, m.processes
FROM timed AS t
JOIN logged AS l USING (run_id)
JOIN member AS m USING (run_id)
ORDER BY t.run_id
"""

# A log that begins behind the inits, or lost them.
_UNPLACED = """
SELECT s.run_id, l.source_id, COUNT(*) AS links, MIN(r.line) AS line
FROM raw.nccl_link AS l
JOIN raw.nccl_record AS r USING (source_id, record_id)
JOIN meta.source AS s USING (source_id)
LEFT JOIN fabric.link AS w ON w.source_id = l.source_id AND w.record_id = l.record_id
LEFT JOIN fabric.member AS m ON m.source_id = w.source_id AND m.handle_id = w.handle_id
WHERE m.handle_id IS NULL
GROUP BY s.run_id, l.source_id
ORDER BY s.run_id, l.source_id
"""

_IMPLIED = """
SELECT run_id, COUNT(DISTINCT process) AS processes, ARG_MIN(line, (source_id, line)) AS line, MIN(source_id) AS source
FROM fabric.member
WHERE identity = 'implied'
GROUP BY run_id
ORDER BY run_id
"""


def add_issues(store: Store) -> None:
    """Issues of runs whose logs are of other processes than their timelines, or of a part, or place no connections."""
    for run_id, processes, line, source_id in store.query(_IMPLIED).iter_rows():
        detail = "the logs name no communicator: what these processes connect is taken for that of one, of unknown size"
        implied = Issue("nccl_communicator_implied", "info", processes, f"line {line}", detail)
        store.append("meta.issue", issue_rows(run_id, source_id, "fabric", [implied]))
    for run_id, source_id, links, line in store.query(_UNPLACED).iter_rows():
        detail = "connections of no communicator that the log names are in raw.nccl_link, and not judged"
        unplaced = Issue("nccl_link_unplaced", "info", links, f"line {line}", detail)
        store.append("meta.issue", issue_rows(run_id, source_id, "fabric", [unplaced]))
    for run_id, largest, logged, ranks, processes in store.query(_REACH).iter_rows():
        found = _issue(largest, logged, ranks, processes)
        if found is not None:
            store.append("meta.issue", issue_rows(run_id, None, "fabric", [found]))


def _issue(largest: int | None, logged: int, ranks: int, processes: int) -> Issue | None:
    """What is to be said of the logs of a run; None where they are of all its ranks.

    Args:
        largest: members of the largest communicator of the timelines; None where they state none.
        logged: the same of the logs.
        ranks: those with a timeline that communicate on devices.
        processes: those that wrote a log.
    """
    if largest is not None and logged < largest:
        detail = (
            f"the largest communicator in NCCL's logs has {logged} ranks, the timelines' has {largest}: the logs are "
            "of another job, or not of all its communicators"
        )
        return Issue(OTHER_JOB, "warning", processes, None, detail)
    if processes < ranks:
        detail = f"NCCL's logs are of {processes} of the {ranks} recorded ranks: what they show holds for these"
        return Issue("nccl_log_of_part", "info", ranks - processes, None, detail)
    return None
