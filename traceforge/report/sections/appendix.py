"""How the report came about: inputs, versions, every query as executed, words and their meaning, licences.

Reads meta.source, and the record of queries of the other sections, so it must be built last.
"""

from traceforge.report.blocks import Block, Code, Column, Missing, Plugin, Section, Subheading, Table, Terms
from traceforge.report.bundle import asset
from traceforge.report.context import Context, Row, query_anchor
from traceforge.report.glossary import GLOSSARY
from traceforge.report.words import clean, count, size

_HASH_LETTERS = 16


def _build(context: Context) -> Section | Missing:
    files = context.rows("sections/appendix_files")
    blocks: list[Block] = [Subheading("Words used here"), Terms(GLOSSARY)]
    blocks += [Subheading("Input files"), _inputs(files, context.limits.table_rows)]
    blocks += [Subheading("Made with"), Terms(_versions(context))]
    blocks.append(Subheading("The queries, as executed"))
    blocks += [Code(query_anchor(query.name), query.title, query.sql) for query in context.executed.values()]
    blocks += [Subheading("Licences"), Code("licences", "Software contained in this file", asset("licences.txt"))]
    return Section(blocks)


def _inputs(files: list[Row], limit: int) -> Table:
    columns = [
        Column("file", code=True, wide=True),
        Column("kind"),
        Column("rank", numeric=True),
        Column("host"),
        Column("status"),
        Column("events", numeric=True),
        Column("stored", numeric=True),
        Column("size", numeric=True),
        Column("SHA-256", code=True),
    ]
    rows = [_file_row(file) for file in files[:limit]]
    return Table(
        columns, rows, max(0, len(files) - limit), f"{count(len(files))} input files", ["sections/appendix_files"]
    )


def _file_row(file: Row) -> list[str]:
    return [
        clean(file["path"], 200),
        clean(file["kind"], 40),
        "—" if file["rank"] is None else f"{file['rank']} ({clean(file['rank_origin'], 40).replace('_', ' ')})",
        clean(file["host"] or "unknown", 80),
        clean(file["status"], 40).replace("_", " "),
        count(file["event_count"]),
        count(file["stored_count"]),
        size(file["size_bytes"]),
        clean(file["content_hash"], 80)[:_HASH_LETTERS],
    ]


def _versions(context: Context) -> list[tuple[str, str]]:
    entries = [(clean(name, 60), clean(version, 120)) for name, version in context.versions.items()]
    if context.command:
        entries.append(("command", clean(context.command, 600)))
    return entries


SECTION = Plugin("How this was made", "Appendix", _build)
