"""Names that say whose job it was, replaced: host-1, path-1, folder-1, job-1, user-1, address-1.

In: the names in a database, and texts. Out: the same texts without them. The same name has the same replacement
everywhere, and the same database gives the same replacements, whatever is made of it (HTML, JSON, exports). Names are
numbered in their natural order. Columns that hold our own words (causes, phases, operations) are left alone.
Not handled: names that occur in kernel or operator names, and measured numbers, which stay as they are.
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
    "path": "path",
    "kernel_file": "path",
    "run_name": "job",
}
"""Columns of which every value is a name, and its kind."""

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
        "iteration", "job", "link", "local", "log", "logs", "name", "node", "none", "out", "output", "path", "rank",
        "ranks", "report", "run", "test", "the", "this", "trace", "traces", "tmp", "training", "usr", "var", "home",
    }
)  # fmt: skip
"""Words that are replaced only where the whole value is a name: in a sentence they mean themselves."""

_TOKEN = re.compile(r"[A-Za-z0-9_~./+@%=\\-]*[A-Za-z0-9_]")
_PIECE = re.compile(r"[A-Za-z0-9]+")
_PATH = re.compile(r"(?:~|\.{1,2})?/.*\w.*|.*/.*\.[A-Za-z0-9]{1,8}")
_ADDRESS = re.compile(r"\d{1,3}(?:\.\d{1,3}){3}")
_HOST_SETTING = re.compile(r"(?<=\bhost=)[^,]+")
_USER = re.compile(r"/(?:home|Users|users)/([^/\s]+)")
_SHORTEST = 3
_MOST_PIECES = 24


class Redaction:
    """Replacements of names; names that were not known before are numbered as they are met."""

    def __init__(self, names: Mapping[str, Iterable[str]]) -> None:
        """Names by kind: `host`, `path`, `folder`, `job`, `user` or `address`."""
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
        if original not in known:
            known[original] = f"{kind}-{len(known) + 1}"
            for form in _forms(kind, original):
                if len(form) >= _SHORTEST and form.lower() not in _COMMON and not form.isdigit():
                    self._in_texts.setdefault(form, known[original])
        return known[original]

    def text(self, text: str) -> str:
        """A text with every name in it replaced."""
        return _TOKEN.sub(lambda found: self._token(found[0]), text)

    def frame(self, frame: "pl.DataFrame") -> "pl.DataFrame":
        """Rows of a query with the names in them replaced, by the names of their columns."""
        import polars as pl

        columns = []
        for column in frame:
            kind = _NAME_COLUMNS.get(column.name)
            if column.name == "parameters" and column.dtype == pl.String:
                columns.append(pl.Series(column.name, [self._settings(value) for value in column], dtype=pl.String))
                continue
            if column.dtype != pl.String or column.name in _OWN_WORDS:
                columns.append(column)
                continue
            values = [
                None if value is None else self.name(kind, value) if kind else self.text(value) for value in column
            ]
            columns.append(pl.Series(column.name, values, dtype=pl.String))
        return pl.DataFrame(columns)

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
    names: dict[str, set[str]] = {kind: set() for kind in ("job", "host", "path", "folder", "user")}
    catalog = store.query(
        "SELECT schema_name, table_name, column_name FROM duckdb_columns()"
        " WHERE database_name = current_database() AND data_type = 'VARCHAR' ORDER BY ALL"
    )
    for schema, table, column in catalog.rows():
        if column in _NAME_COLUMNS:
            asked = store.query(f'SELECT DISTINCT "{column}" FROM "{schema}"."{table}" WHERE "{column}" IS NOT NULL')
            names[_NAME_COLUMNS[column]].update(asked[column].to_list())
    names["folder"] = {folder for path in names["path"] for folder in path.split("/")[:-1] if folder} - names["job"]
    values = store.query("SELECT DISTINCT value FROM raw.nccl_environment WHERE value IS NOT NULL")["value"].to_list()
    names["user"] = {user for text in [*names["path"], *values] for user in _USER.findall(text)}
    return {kind: {name for name in known if name} for kind, known in names.items()}


def _forms(kind: str, original: str) -> list[str]:
    """How a name may stand in a text: paths also without their folders, hosts also without their domain."""
    if kind == "path":
        return [original, original.rpartition("/")[2]]
    return [original, original.partition(".")[0]] if kind == "host" else [original]


def _natural(name: str) -> list[tuple[int, int, str]]:
    """Order in which node2 stands before node10."""
    return [(0, int(part), "") if part.isdigit() else (1, 0, part) for part in re.split(r"(\d+)", name) if part]
