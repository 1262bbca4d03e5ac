"""What of a file is one rank's. In: a path, all sources. Out: its parts, with hash and kind where these are known.

Idea: some formats hold several ranks in a file (a report of Nsight Systems: all processes of a host). Each part is read
by itself, has a row of meta.source and a hash of its own, so that all that holds of files holds of parts.
"""

import hashlib
from collections.abc import Mapping
from pathlib import Path
from typing import cast

from traceforge.errors import InputUnusableError
from traceforge.files import content_hash, is_member, read_head
from traceforge.records import Parted, ReadLimits, Source
from traceforge.store.budget import within
from traceforge.store.spool import Identity, kind_of

_START_BYTES = 64


def parts_of(path: Path, sources: Mapping[str, Source]) -> list[tuple[str | None, Identity | None]]:
    """Name and identity of each part of a file; no name where it is one rank's, no identity where a worker finds it."""
    # What is in an archive was hashed when it was listed; each worker would have to list it anew.
    identity = _identity(path, sources) if is_member(path) else None
    try:
        kind, names = _named_parts(path, sources)
        if len(names) < 2:
            return [(None, identity)]
        digest = identity[0] if identity else content_hash(path)
    except Exception:  # noqa: BLE001 - whoever reads the file will say why it cannot be read
        return [(None, identity)]
    return [(name, (hashlib.sha256(f"{digest}/{name}".encode()).hexdigest(), kind)) for name in names]


def _named_parts(path: Path, sources: Mapping[str, Source]) -> tuple[str, list[str]]:
    """Kind and names of the parts of a file that may have some."""
    start = read_head(path, _START_BYTES)
    # A look for one method: to check a whole protocol takes longer than to read the start of the file.
    parted = {name: cast(Parted, source) for name, source in sources.items() if hasattr(source, "may_recognise")}
    if any(source.may_recognise(start) for source in parted.values()):
        kind = kind_of(path, sources)
        if kind in parted:
            with within(ReadLimits(), path):
                return kind, parted[kind].parts(path)
    return "", []


def _identity(path: Path, sources: Mapping[str, Source]) -> Identity | None:
    try:
        return content_hash(path), kind_of(path, sources)
    except (InputUnusableError, OSError):
        return None
