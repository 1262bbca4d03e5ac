"""Questions without options. In: arguments. Out: their answer on stdout, and whether they were such a question.

Idea: to load the parser of arguments takes longer than these take to answer; whatever has an option, or asks anything
but a database, is the parser's. Not handled: what the commands `sql` and `info` do beside that, see there.
"""

from collections.abc import Sequence
from pathlib import Path

from traceforge.cli.info_text import print_info
from traceforge.cli.sql_text import opened_for_sql, print_answer


def is_answered(arguments: Sequence[str]) -> bool:
    """Whether these arguments were `sql DB QUERY` or `info DB`, which is answered then."""
    match arguments:
        case ["sql", db, query] if not _is_option(db) and not _is_option(query):
            with opened_for_sql(Path(db)) as asked:
                asked.lock_down()
                print_answer(asked, query)
        case ["info", db] if not _is_option(db) and _is_database(Path(db)):
            from traceforge import api
            from traceforge.cli.progress import progress

            with progress() as shown:
                built = api.open_built(Path(db), None, shown.on_table)
            with built as store:
                print_info(api.info(store))
        case _:
            return False
    return True


def _is_option(argument: str) -> bool:
    return argument.startswith("-") or not argument


def _is_database(path: Path) -> bool:
    from traceforge.store.folder import is_database

    return is_database(path)
