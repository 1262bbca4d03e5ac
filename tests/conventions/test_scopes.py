"""Every table of a stage states what its rows are made from, and its columns say which file, rank or iteration that is.

Idea: a table of scope source or rank can be made one file or rank at a time; nobody should have to read its query to
know that. Not handled: whether the query keeps to it; `tests/align/test_rank_batches.py` builds tables either way.
"""

import pytest

from traceforge.api import STAGES
from traceforge.store.documents import Document
from traceforge.store.stage import stage_documents

TABLES = [
    document for stage in STAGES for document in stage_documents(f"traceforge.{stage}") if document.kind != "MACRO"
]
# What rows of a scope are told apart by: one of these columns.
KEYS = {
    "source": {"source_id"},
    "rank": {"rank", "source_id"},
    "iteration": {"iteration"},
}


def test_every_table_and_view_states_its_scope() -> None:
    assert [document.name for document in TABLES if document.scope is None] == []


@pytest.mark.parametrize("scope", KEYS)
def test_rows_of_a_scope_say_which_they_belong_to(scope: str) -> None:
    own = [document for document in TABLES if document.scope == scope]

    assert own
    assert [document.name for document in own if not KEYS[scope] & document.columns.keys()] == []


def test_what_follows_from_one_file_reads_no_table_of_ranks_or_iterations() -> None:
    scope_of = {document.name: document.scope for document in TABLES}

    def reads_more(document: Document) -> bool:
        return any(scope_of.get(name) in {"rank", "iteration"} for name in document.reads)

    assert [document.name for document in TABLES if document.scope == "source" and reads_more(document)] == []
