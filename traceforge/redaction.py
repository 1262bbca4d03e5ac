"""Names that identify a job's owner, replaced: host-1, rack-1, path-1, folder-1, job-1, user-1, address-1.

In: the names in a database, and texts. Out: the same texts without them; warnings that are quoted go whole. The same
name has the same replacement everywhere, and the same database gives the same replacements, whatever is made of it
(HTML, JSON, exports). Names are numbered in their natural order. Columns that hold our own words (causes, phases,
operations) are left alone.
Not handled: names that are part of a longer word of an operator's or kernel's name, and measured numbers.
"""

import re
from collections.abc import Iterable, Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import polars as pl

    from traceforge.store.database import Store

_NAME_COLUMNS = {
    "host": "host",
    "source_host": "host",
    "target_host": "host",
    "host_name": "host",
    "rack": "rack",
    "path": "path",
    "kernel_file": "path",
    "run_name": "job",
    "peer": "address",
    "address": "address",
    "local_gid": "address",
    "remote_gid": "address",
    "process": "process",
    "process_name": "process",
    "process_labels": "label",
    "thread": "thread",
    "thread_name": "thread",
}
"""Columns of which every value is a name, and its kind."""

FREE_TEXT = frozenset(
    {
        "fabric.hang.stack", "meta.rack_pattern.pattern",
        "raw.chakra_attribute.value", "raw.chakra_file.metadata", "raw.flight_recorder_entry.stack",
        "raw.argument.args", "raw.profile.metadata", "raw.operation_input.concrete",
        "raw.nccl_environment.value", "raw.nccl_event.text", "raw.nccl_exception.text",
        "raw.nccl_unparsed.example", "raw.nccl_unparsed.template",
    }
)  # fmt: skip
"""Columns that may hold anything a program or a person wrote: names in them cannot be recognised, so all of it goes."""

_SELDOM_SAID = frozenset({"process", "label", "thread"})
_ANYBODYS = re.compile(r"-?\d+|CPU|[GX]PU \d+|stream -?\d+|Spans|Traces|(?:Trace )?PyTorch Profiler(?: \(\d+\))?|")
"""What the profiler itself calls processes, labels and threads."""

_OWN_WORDS = frozenset(
    {
        "action", "against", "algorithm", "cause", "code", "confidence", "content_hash", "direction", "dtype", "kind",
        "label", "largest_cause", "method", "mode", "model", "network", "op", "origin",  "path_class",
        "pattern", "phase", "policy", "protocol", "rank_origin", "severity", "stage", "state", "status",
        "subject_kind", "term", "told_cause", "unit", "verdict", "versions",
    }
)  # fmt: skip
"""Columns that hold words of our own or of NCCL's, never names."""

_COMMON = frozenset(
    {
        "all", "collective", "data", "default", "device", "fabric", "finding", "for", "from", "gpu", "host",
        "iteration", "job", "link", "local", "log", "logs", "name", "node", "none", "out", "output", "path", "rack",
        "rank", "ranks", "report", "run", "test", "the", "this", "trace", "traces", "tmp", "training", "usr", "var",
        "home",
    }
)  # fmt: skip
"""Words that are replaced only where the whole value is a name: in a sentence they mean themselves."""

_TOKEN = re.compile(r"[A-Za-z0-9_~./+@%=\\-]*[A-Za-z0-9_]")
_PIECE = re.compile(r"[A-Za-z0-9]+")
_PATH = re.compile(r"(?:~|\.{1,2})?/.*\w.*|.*/.*\.[A-Za-z0-9]{1,8}")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_HOST_SETTING = re.compile(r"(?<=\bhost=)[^,]+")
_USER = re.compile(r"/(?:home|Users|users)/([^/\s]+)")
_STATED_HOSTS = "SELECT DISTINCT value FROM raw.nccl_environment WHERE name = 'NCCL_HOSTID' AND value IS NOT NULL"
_TEXTS_WITH_USERS = """
SELECT value AS text FROM raw.nccl_environment WHERE value IS NOT NULL
UNION SELECT name FROM raw.event_kind WHERE CONTAINS(name, '/')
UNION SELECT name FROM raw.chakra_node WHERE CONTAINS(name, '/')
"""
_WARNINGS = "SELECT DISTINCT text[:200] AS text FROM raw.nccl_event WHERE kind = 'warning' AND text IS NOT NULL"
"""What fabric.finding quotes as it was written: names in it cannot be recognised."""
_IN_BRACKETS = re.compile(r"\(([^()]+)\)$")
_SHORTEST = 3
_MOST_PIECES = 24


class Redaction:
    """Replacements of names; names that were not known before are numbered as they are met."""

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        """Names by kind, such as `host`, `path` or `job`; a kind is what stands before the number."""
        self._known: dict[str, dict[str, str]] = {}
        self._in_texts: dict[str, str] = {}
        for kind, originals in names.items():
            for original in sorted(set(originals), key=_natural):
                self.name(kind, original)

    @classmethod
    def of(cls, store: "Store") -> "Redaction":
        """The replacements of every name a database holds."""
        return cls(names_in(store))

    def name(self, kind: str, original: str) -> str:
        """The replacement of a value that is a name as a whole."""
        known = self._known.setdefault(kind, {})
        if kind in _SELDOM_SAID and _ANYBODYS.fullmatch(original):
            return original
        if original not in known:
            known[original] = f"{kind}-{len(known) + 1}"
            for form in _forms(kind, original):
                if len(form) >= _SHORTEST and form.lower() not in _COMMON and not form.isdigit():
                    self._in_texts.setdefault(form, known[original])
        return known[original]

    def text(self, text: str) -> str:
        """A text with every name in it replaced."""
        messages = self._known.get("message", {})
        for message in sorted(messages, key=len, reverse=True):  # the longest first, which may hold others
            text = text.replace(message, messages[message])
        return _TOKEN.sub(lambda found: self._token(found[0]), text)

    def frame(self, frame: "pl.DataFrame") -> "pl.DataFrame":
        """Rows of a query with the names in them replaced, by the names of their columns."""
        import polars as pl

        return pl.DataFrame([self._column(column) for column in frame])

    def _column(self, column: "pl.Series") -> "pl.Series":
        import polars as pl

        if column.name in _OWN_WORDS or column.dtype not in (pl.String, pl.List(pl.String)):
            return column
        kind = _NAME_COLUMNS.get(column.name)

        def replaced(value: str | None) -> str | None:
            if value is None or column.name == "parameters":
                return self._settings(value)
            return self.name(kind, value) if kind else self.text(value)

        if column.dtype == pl.String:
            values: list[object] = [replaced(value) for value in column]
        else:
            values = [None if several is None else [replaced(value) for value in several] for several in column]
        return pl.Series(column.name, values, dtype=column.dtype)

    def _settings(self, settings: str | None) -> str | None:
        """Settings such as `host=node0,every=4`: the words are ours, the host is the user's."""
        return settings and _HOST_SETTING.sub(lambda found: self.name("host", found[0]), settings)

    def _token(self, token: str) -> str:
        if token in self._in_texts:
            return self._in_texts[token]
        if _ADDRESS.fullmatch(token):
            return self.name("address", token)
        if _PATH.fullmatch(token):
            return self.name("path", token)
        return self._pieces(token)

    def _pieces(self, token: str) -> str:
        """The token with names inside it replaced, such as the host in `node1-ib0`; the longest first."""
        pieces = list(_PIECE.finditer(token))[:_MOST_PIECES]
        for size in range(len(pieces), 0, -1):
            for first in range(len(pieces) - size + 1):
                start, end = pieces[first].start(), pieces[first + size - 1].end()
                if token[start:end] in self._in_texts:
                    before, after = self._pieces(token[:start]), self._pieces(token[end:])
                    return before + self._in_texts[token[start:end]] + after
        return token


def names_in(store: "Store") -> dict[str, set[str]]:
    """The names a database holds, by kind, from whichever of its tables have columns of names."""
    names: dict[str, set[str]] = {kind: set() for kind in ("job", "folder", "user", *_NAME_COLUMNS.values())}
    catalog = store.query(
        "SELECT schema_name, table_name, column_name FROM duckdb_columns()"
        " WHERE database_name = current_database() AND data_type = 'VARCHAR' ORDER BY ALL"
    )
    for schema, table, column in catalog.rows():
        if column in _NAME_COLUMNS:
            asked = store.query(f'SELECT DISTINCT "{column}" FROM "{schema}"."{table}" WHERE "{column}" IS NOT NULL')
            names[_NAME_COLUMNS[column]].update(asked[column].to_list())
    names["host"] |= set(store.query(_STATED_HOSTS)["value"].to_list())
    names["folder"] = {folder for path in names["path"] for folder in path.split("/")[:-1] if folder} - names["job"]
    names["message"] = set(store.query(_WARNINGS)["text"].to_list())
    texts = [*names["path"], *store.query(_TEXTS_WITH_USERS)["text"].to_list()]
    names["user"] = {user for text in texts for user in _USER.findall(text)}
    return {kind: {name for name in known if name} for kind, known in names.items()}


def _forms(kind: str, original: str) -> list[str]:
    """How a name may stand in a text: paths also without their folders, hosts also without their domain.

    A message is replaced before words are looked at. A process called `python` or a thread called `main` is no reason
    to take these words out of sentences.
    """
    if kind == "message":
        return []
    if kind in _SELDOM_SAID:
        return [form for form in (original, *_IN_BRACKETS.findall(original)) if not form.isalpha()]
    if kind == "path":
        return [original, original.rpartition("/")[2]]
    return [original, original.partition(".")[0]] if kind == "host" else [original]


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Order in which node2 stands before node10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]
