"""Every error a user can meet, as one tree. A message says what, where and why; `hint` says what to do next.

TraceforgeError            exit 1   something traceforge itself did wrong or could not foresee
├── UsageError             exit 2   the command line asks for something that cannot be
├── InputUnusableError     exit 3   a file, folder or database cannot be used at all
│   ├── NotATraceError     exit 3   the bytes are no trace that any source reads
│   │   └── NoRanksTraceError  exit 3   a sound trace that is no rank's: of another tool, or of several ranks in one
│   ├── StoreTooNewError   exit 3   a newer traceforge wrote the database
│   ├── StoreBusyError     exit 3   another process holds the database
│   └── ClusterError       exit 3   the machines of a cluster cannot read the files
├── QueryError             exit 2   a user's SQL was refused by the database
├── PartialDataError       exit 4   `--strict` was asked for and something was skipped or repaired
└── PluginError            exit 1   a plug-in file does not keep its contract

Limits of `check` that are exceeded (exit 10) are results, not errors. A command that signal N ends exits with 128 + N.
"""


class TraceforgeError(Exception):
    """Base of all errors raised on purpose.

    Args:
        what: one sentence without a full stop, in the user's terms.
        where: file, line or byte, or None where no place is at fault.
        hint: what the user can do next, or None.
    """

    exit_code = 1

    def __init__(self, what: str, *, where: str | None = None, hint: str | None = None) -> None:
        super().__init__(what)
        self.what = what
        self.where = where
        self.hint = hint

    def __str__(self) -> str:
        # A line break in a path cannot begin a line that seems to be ours.
        place = self.where.replace("\n", "\\n") + ": " if self.where else ""
        advice = f"\n\nhint: {self.hint}" if self.hint else ""
        return f"{place}{self.what}{advice}"

    def __reduce__(self) -> tuple[object, ...]:
        # Workers in other processes raise these; the default pickling would lose the keyword fields.
        return (_rebuild, (type(self), self.what, self.where, self.hint))


def _rebuild(kind: type[TraceforgeError], what: str, where: str | None, hint: str | None) -> TraceforgeError:
    return kind(what, where=where, hint=hint)


class UsageError(TraceforgeError):
    """The command line or a parameter is wrong."""

    exit_code = 2


class QueryError(TraceforgeError):
    """A user's SQL was refused by the database."""

    exit_code = 2


class InputUnusableError(TraceforgeError):
    """An input cannot be used at all."""

    exit_code = 3


class NotATraceError(InputUnusableError):
    """No source recognises the bytes of a file."""


class NoRanksTraceError(NotATraceError):
    """A file is sound, but no rank's trace."""


class StoreTooNewError(InputUnusableError):
    """The database was written by a newer traceforge."""


class StoreBusyError(InputUnusableError):
    """The database is held by another process."""


class ClusterError(InputUnusableError):
    """Machines of a cluster cannot read: they are lost, full, of another version, or do not see the files."""


class PartialDataError(TraceforgeError):
    """Something was skipped or repaired, and the user asked for that to be an error."""

    exit_code = 4


class PluginError(TraceforgeError):
    """A plug-in module lacks the object its folder's contract asks for."""
