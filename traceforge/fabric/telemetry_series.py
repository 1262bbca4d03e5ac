"""Whose each series of telemetry is. Reads raw.telemetry_series, align.rank; fills fabric.telemetry_series.

Idea: what a trace itself samples of the device that it used is its rank's. A UUID or a PCI address names a device for
good; the number of a device is that of the trace as long as no two ranks of a host claim it (CUDA_VISIBLE_DEVICES gives
every process its own device 0). What stays unclear has no rank.
Not handled: devices whose order CUDA_VISIBLE_DEVICES changes while each rank still has a number of its own.
"""

import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import msgspec
import polars as pl

from traceforge.reading.json_values import UNDECODABLE
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows

_SERIES = """
SELECT s.run_id, t.source_id, t.series_id, t.metric, t.host, t.device, t.uuid, t.pci_address, t.nic, s.path,
  s.rank AS named_rank
FROM raw.telemetry_series AS t
JOIN meta.source AS s USING (source_id)
ORDER BY s.run_id, t.source_id, t.series_id
"""
_RANKS = """
SELECT r.run_id, r.rank, r.source_id, r.host, p.metadata, MIN(e.device) AS first_device, MAX(e.device) AS last_device
FROM align.rank AS r
JOIN raw.profile AS p USING (source_id)
LEFT JOIN raw.occurrence AS e ON e.source_id = r.source_id AND e.stream IS NOT NULL
GROUP BY ALL
ORDER BY r.run_id, r.rank
"""
_LOGGED = """
SELECT run_id, global_rank AS rank, ANY_VALUE(pci_address) AS pci_address
FROM fabric.member
WHERE global_rank IS NOT NULL AND pci_address IS NOT NULL
GROUP BY ALL
HAVING COUNT(DISTINCT pci_address) = 1
"""
_PCI = re.compile(r"(?:0x)?(?:([0-9a-f]{4,8}):)?([0-9a-f]{2}):([0-9a-f]{2})(?:\.[0-9a-f])?", re.IGNORECASE)
_SCHEMA = {
    "run_id": pl.Int32, "source_id": pl.Int32, "series_id": pl.Int32, "metric": pl.String, "host": pl.String,
    "device": pl.Int32, "nic": pl.String, "rank": pl.Int32, "joined_by": pl.String, "clock_rank": pl.Int32,
}  # fmt: skip
_LEFT = "telemetry of devices that no rank is known to use: record uuid or pci.bus_id, and name the host in the path"

Pci = tuple[int, int, int]


class _StatedDevice(msgspec.Struct):
    id: int | None = None
    uuid: str | None = None
    pci_address: str | None = msgspec.field(default=None, name="pciBusId")


class _LiveDevice(msgspec.Struct):
    uuid: str | None = None
    pci: str | None = None


class _LiveFacts(msgspec.Struct):
    device: _LiveDevice = msgspec.field(default_factory=_LiveDevice)


class _ProfileMetadata(msgspec.Struct):
    devices: list[_StatedDevice] = msgspec.field(default_factory=list, name="deviceProperties")
    live: _LiveFacts | None = None


@dataclass(frozen=True, slots=True)
class RankDevice:
    """The device of a rank; None for what nothing states.

    Attributes:
        number: in its process.
        source_id: its trace.
    """

    rank: int
    host: str | None
    number: int | None
    uuid: str | None
    pci: Pci | None
    source_id: int | None = None


def rows(store: Store) -> pl.DataFrame:
    """One row a series; adds an issue for devices that are nobody's."""
    series = store.query(_SERIES)
    if series.is_empty():
        return pl.DataFrame(schema=_SCHEMA)
    ranks = _ranks(store)
    found, left = [], Counter[int]()
    for row in series.iter_rows(named=True):
        own = ranks.get(row["run_id"], [])
        host = row["host"] or host_of(row["path"], row["named_rank"], own)
        rank, joined_by = rank_of(row, host, own) if row["nic"] is None else (None, None)
        clock_rank = rank if rank is not None else next((one.rank for one in own if _same_host(one.host, host)), None)
        known = next((one.host for one in own if one.rank == clock_rank), None) or host
        place = (row["run_id"], row["source_id"], row["series_id"], row["metric"])
        found.append((*place, known, row["device"], row["nic"], rank, joined_by, clock_rank))
        left[row["run_id"]] += int(row["nic"] is None and rank is None)
    for run_id, count in left.items():
        issues = [Issue("telemetry_of_no_rank", "warning", count, None, _LEFT)] if count else []
        store.append("meta.issue", issue_rows(run_id, None, "fabric", issues))
    return pl.DataFrame(found, schema=_SCHEMA, orient="row")


def _ranks(store: Store) -> dict[int, list[RankDevice]]:
    """The devices of all ranks, by run."""
    logged = {(run_id, rank): pci_key(text) for run_id, rank, text in store.rows(_LOGGED)}
    found: dict[int, list[RankDevice]] = {}
    for run_id, rank, source_id, host, metadata, first, last in store.rows(_RANKS):
        number = first if first == last else None
        own = _own_device(metadata, number)
        pci = pci_key(own.pci_address) or logged.get((run_id, rank))
        found.setdefault(run_id, []).append(RankDevice(rank, host, number, own.uuid, pci, source_id))
    return found


def _own_device(metadata: str, number: int | None) -> _StatedDevice:
    """What the trace says of the device with a number, a recording of its only one; nothing where it does not say."""
    try:
        said = msgspec.json.decode(metadata, type=_ProfileMetadata)
    except UNDECODABLE:
        return _StatedDevice()
    if said.live is not None:
        return _StatedDevice(uuid=said.live.device.uuid, pci_address=said.live.device.pci)
    return next((one for one in said.devices if one.id == number is not None), _StatedDevice())


def pci_key(text: str | None) -> Pci | None:
    """A PCI address as numbers: domain, bus, device; None where it is none."""
    found = _PCI.fullmatch(text.strip()) if text else None
    return (int(found[1] or "0", 16), int(found[2], 16), int(found[3], 16)) if found else None


def host_of(path: str, named_rank: int | None, ranks: Sequence[RankDevice]) -> str | None:
    """The host of a file that states none: that of the rank in its name, the one its path names, or the only one."""
    by_name = next((one.host for one in ranks if one.rank == named_rank is not None), None)
    hosts = {one.host for one in ranks if one.host}
    named = [host for host in hosts if _is_named(_short(host), path)]
    if by_name or len(named) == 1:
        return by_name or named[0]
    is_alone = len(hosts) == 1 and all(one.host for one in ranks)
    return next(iter(hosts)) if is_alone else None


def _is_named(host: str, path: str) -> bool:
    return re.search(rf"(?<![\w-]){re.escape(host)}(?![\w-])", path, re.IGNORECASE) is not None


def _short(host: str) -> str:
    """A host's name without its domain; an address stays whole."""
    return host if host.replace(".", "").isdecimal() else host.partition(".")[0]


def _same_host(one: str | None, other: str | None) -> bool:
    return one is not None and other is not None and _short(one).lower() == _short(other).lower()


def rank_of(
    series: Mapping[str, Any], host: str | None, ranks: Sequence[RankDevice]
) -> tuple[int, str] | tuple[None, None]:
    """The rank that uses a device, and how that is known."""
    for how, own in _candidates(series, host, ranks):
        if len(own) == 1:
            return own[0].rank, how
        if own:
            return None, None
    return None, None


def _candidates(
    series: Mapping[str, Any], host: str | None, ranks: Sequence[RankDevice]
) -> Iterator[tuple[str, list[RankDevice]]]:
    """Ranks that fit a device, by what identifies it; the surest first."""
    in_it = [one for one in ranks if one.source_id is not None and one.source_id == series["source_id"]]
    # A trace that numbers no device in what it samples sampled its rank's alone.
    yield "trace", [one for one in in_it if series["device"] is None or one.number == series["device"]]
    uuid, pci = _plain_uuid(series["uuid"]), pci_key(series["pci_address"])
    yield "uuid", [one for one in ranks if uuid is not None and _plain_uuid(one.uuid) == uuid]
    local = [one for one in ranks if _same_host(one.host, host)]
    yield "pci", [one for one in local if pci is not None and one.pci == pci]
    # Where the trace knows the address of a rank's device, its number is not asked.
    unknown = [one for one in local if pci is None or one.pci is None]
    yield "index", [one for one in unknown if one.number is not None and one.number == series["device"]]


def _plain_uuid(text: str | None) -> str | None:
    return text.lower().removeprefix("gpu-").replace("-", "") or None if text else None
