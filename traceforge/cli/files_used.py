"""What of the given files an answer rests on. In: a database and a run. Out: lines that say it first, with reasons.

Nothing is said where every trace file is used in the one run there is. Files that are no traces are not counted.
"""

from typing import TYPE_CHECKING

from traceforge.cli.console import note
from traceforge.units import plural

if TYPE_CHECKING:
    from traceforge.store.database import Store

_MOST_LINES = 6
_FILES = "SELECT run_id, path, is_used, reason FROM align.file WHERE LIST_CONTAINS(?, run_id) ORDER BY source_id"
_FAILED = """
SELECT first_at, detail FROM meta.issue
WHERE code IN ('file_failed', 'file_of_no_rank') AND LIST_CONTAINS(?, run_id)
ORDER BY ALL
"""


def files_used(store: "Store", run_id: int, *, in_all_runs: bool = False) -> list[str]:
    """Such as `7 of 9 files used`, then why the others are not; empty where all are.

    Args:
        in_all_runs: count files as used that are in a run of their own.
    """
    from traceforge import api

    family = api.divided_runs(store, run_id)
    files = store.rows(_FILES, [list(family)])
    failed = store.rows(_FAILED, [list(family)])
    used = [is_used and (in_all_runs or own == run_id) for own, _, is_used, _ in files]
    reasons = [f"{path}: {reason}" for _, path, is_used, reason in files if not is_used]
    reasons += [f"{path}: {why}" for path, why in failed]
    other_runs = [
        f"{plural(sum(own == other for own, *_ in files), 'file')} of run `{name}`: see it with --run"
        for other, name in family.items()
        if other != run_id
    ]
    if all(used) and not failed and not other_runs:
        return []
    where = f" in {len(family)} runs" if in_all_runs and len(family) > 1 else ""
    lines = [f"{sum(used)} of {plural(len(files) + len(failed), 'file')} used{where}"]
    for label, texts in (("left out", reasons), ("other run", other_runs)):
        lines += [f"  {label}: {text}" for text in texts[:_MOST_LINES]]
        if len(texts) > _MOST_LINES:
            lines.append(f"  {label}: {len(texts) - _MOST_LINES} more")
    return lines


def note_other_runs(
    store: "Store", run_id: int, asked: str | None, option: str = "--run", *, lead: str = "this is about"
) -> None:
    """Say which run an answer is about where nobody asked for it and the same files hold others.

    Args:
        asked: the run that the user named, or None.
        option: what names another one.
        lead: how the note begins.
    """
    from traceforge import api

    family = api.divided_runs(store, run_id)
    others = [f"`{name}`" for other, name in family.items() if other != run_id]
    if asked is None and others:
        more = f" and {len(others) - _MOST_LINES} more" if len(others) > _MOST_LINES else ""
        note(f"{lead} run `{family[run_id]}`; {option} takes {', '.join(others[:_MOST_LINES])}{more}")
