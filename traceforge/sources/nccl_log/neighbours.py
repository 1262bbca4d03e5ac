"""Lines of others in the same output: banners without head, nccl-tests tables, PyTorch's watchdog and exceptions.

In: lines without a record. Out: rows of raw.nccl_bench*, raw.nccl_watchdog, under a rule's name; exceptions and reports
of NCCL's RAS have modules of their own.
Idea: they share the stream with NCCL's records, so they are read with them and are records too. Rows of a table are
looked for only behind its heading. Not handled: JSON output of nccl-tests.
Seen: nccl-tests 2.0 to 2.17, PyTorch 2.0 to 2.9.
"""

import re
from collections.abc import Mapping

from traceforge.sources.nccl_log.exceptions import TorchExceptions
from traceforge.sources.nccl_log.grammar import Rule, fitting, row_of, rule
from traceforge.sources.nccl_log.quantities import Read, gigabytes, integer, microseconds, milliseconds
from traceforge.sources.nccl_log.ras import RasReport
from traceforge.sources.nccl_log.stamps import read_stamp
from traceforge.sources.nccl_log.tables import Tables

_BANNER = re.compile(r"(?:^|[>\])]:? ?|\d: |\| )(?=NCCL version|RCCL version)")
_STAMPED_BANNER = re.compile(r" (?=NCCL version|RCCL version)")
_TEST = re.compile(r"# Collective test starting: (?P<test>\w+)|\b(?P<binary>\w+_perf)\b")
_HEADING = re.compile(r"# +size +count +type")
_END = re.compile(r"# (?:Out of bounds|Avg bus)")

_BENCH_RANK = rule(
    "bench_rank",
    "nccl-tests",
    r".*?# +Rank +(?P<rank>\d+)(?: Group +(?P<bench_group>\d+))? Pid +(?P<pid>\d+) on +(?P<host>\S+)"
    r" device +(?P<device>\d+) \[(?P<bus>[0-9a-fA-Fx:]+)\] (?P<device_name>.+)",
    table="bench_rank",
)
_RESULT = r"[\d.]+\s+[\d.]+\s+[\d.]+\s+\S+"
_BENCH = re.compile(
    r"(?:.*?[>\]:] ?)?\s*(?P<size_bytes>\d+)\s+(?P<element_count>\d+)\s+(?P<datatype>[a-z]\w*)"
    rf"(?:\s+(?P<reduction>[a-z]\w*))?(?:\s+(?P<root>-?\d+))?\s+(?P<out>{_RESULT})(?:\s+(?P<in>{_RESULT}))?$"
)
_BENCH_READ: Mapping[str, Read] = {
    "duration_ns": microseconds,
    "algorithm_bandwidth_bytes_per_s": gigabytes,
    "bus_bandwidth_bytes_per_s": gigabytes,
}

# Longer lines are none of PyTorch's watchdog; who writes one must not keep the search busy.
_LONGEST_WATCHDOG = 1_000
# The rank in brackets counts within its group, the one of the logger in the job.
_WHO = (
    r"(?:[^\[]{0,200}(?:\[(?!rank\d)[^\[]{0,200}){0,3}\[rank(?P<global_rank>\d+)\])?.*?"
    r"\[(?:PG (?:ID )?(?P<process_group_id>\d+)? ?(?:\([^)]*\) )?(?:PG )?(?:GUID (?P<process_group_name>\S+) )?)?"
    r"Rank (?P<rank>\d+)\] +"
)
_WATCHDOG = (
    rule(
        "watchdog",
        "PyTorch 2.0-2.8",
        rf"{_WHO}Watchdog caught collective operation timeout: Work[A-Z]{{0,9}}CCL\(SeqNum=(?P<sequence>\d+)"
        r", OpType=(?P<op>\w+)"
        r"(?:,? TensorShape=\[[^\]]*\])?(?:, NumelIn=(?P<in_elements>\d+), NumelOut=(?P<out_elements>\d+))?"
        r",? Timeout\(ms\)=(?P<timeout_ns>\d+)\)(?: ran for (?P<age_ns>\d+) milliseconds)?",
        table="watchdog",
        constants={"event": "timeout"},
        read={"timeout_ns": milliseconds, "age_ns": milliseconds},
    ),
    rule(
        "watchdog",
        "PyTorch 2.3-2.8",
        rf"{_WHO}(?:.*?at (?:NCCL )?work(?: sequence id)?: (?P<sequence>\d+),? )?.*?"
        r"[Ll]ast enqueued (?:[A-Z]{0,9}CCL )?work: (?P<last_enqueued>-?\d+)"
        r"(?:, last started (?:[A-Z]{0,9}CCL )?work: (?P<last_started>-?\d+))?"
        r", last completed (?:[A-Z]{0,9}CCL )?work: (?P<last_completed>-?\d+)",
        table="watchdog",
        constants={"event": "progress"},
    ),
)


class Neighbours:
    """Reads the lines of one file that hold no record of NCCL.

    Attributes:
        in_table: whether rows of a table are expected.
        exceptions: what reads those.
        ras: what reads reports of NCCL's RAS.
    """

    def __init__(self, tables: Tables) -> None:
        self.in_table = False
        self.exceptions = TorchExceptions(tables)
        self.ras = RasReport(tables)
        self._tables = tables
        self._test: str | None = None

    @property
    def goes_on(self) -> bool:
        """Whether the next lines may belong to what was begun, whatever they look like."""
        return self.in_table or self.exceptions.is_open or self.ras.is_open

    def finish(self) -> None:
        """Store what is known of what was begun."""
        self.exceptions.finish()
        self.ras.finish()

    def banner(self, text: str) -> str | None:
        """The banner in a line, from its first word on; None where there is none."""
        match = _BANNER.search(text, 0, 200)
        if match is None and (stamped := _STAMPED_BANNER.search(text, 0, 200)) is not None:
            match = stamped if read_stamp(text[: stamped.end()]) else None
        if match is None:
            return None
        self.ras.may_begin(text)
        return text[match.end() :]

    def read(self, text: str, record_id: int) -> str | None:
        """Store what a line says; returns its rule's name, None where it says nothing."""
        if self.ras.is_open and self.ras.read(text, record_id):
            return "ras"
        if (self.exceptions.is_open or "NCCL error" in text) and self.exceptions.read(text, record_id):
            return "exception"
        if "# " in text and self._heading(text, record_id):
            return "bench_rank"
        if self.in_table and (match := _BENCH.match(text)):
            return "bench" if self._bench(match, record_id) else None
        if "ast enqueued" in text or "Watchdog caught" in text:
            for one in _WATCHDOG:
                if match := one.pattern.match(text[:_LONGEST_WATCHDOG]):
                    return one.name if self._add(one, match, record_id) else None
        return None

    def _heading(self, text: str, record_id: int) -> bool:
        """Note what a comment of nccl-tests says; true where it is a row of its rank table."""
        if match := _BENCH_RANK.pattern.match(text):
            return self._add(_BENCH_RANK, match, record_id)
        if _HEADING.search(text):
            self.in_table = True
        elif _END.search(text):
            self.in_table = False
        elif match := _TEST.search(text):
            self._test = match["test"] or match["binary"]
        return False

    def _add(self, one: Rule, match: re.Match[str], record_id: int) -> bool:
        if one.table is None:
            return False
        row = row_of(one, one.table, match.groupdict())
        if job_wide := match.groupdict().get("global_rank"):
            row["rank"] = fitting(integer(job_wide), "i32")
        return self._tables.add(one.table, {**row, "record_id": record_id})

    def _bench(self, match: re.Match[str], record_id: int) -> bool:
        row: dict[str, object] = {"record_id": record_id, "test": self._test, "datatype": match["datatype"]}
        row["reduction"] = match["reduction"]
        for name, kind in (("size_bytes", "i64"), ("element_count", "i64"), ("root", "i32")):
            row[name] = fitting(integer(match[name] or ""), kind)
        stored = False
        for place in ("out", "in"):
            if match[place]:
                words = match[place].split()
                measured = {name: read(word) for (name, read), word in zip(_BENCH_READ.items(), words, strict=False)}
                result = {**row, **measured, "is_in_place": place == "in", "wrong": words[3]}
                stored |= self._tables.add("bench", result)
        return stored
