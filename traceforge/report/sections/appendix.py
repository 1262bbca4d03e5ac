"""How the report came about: inputs, versions, every query as executed, terms, licences.

Reads meta.source, and the record of queries of the other sections, so it must be built last.
"""

from traceforge.report.blocks import Block, Code, Definitions, Missing, Section, Subheading, Table, TableColumn, number
from traceforge.report.bundle import asset
from traceforge.report.context import Context, Row, query_anchor
from traceforge.report.formatting import clean, count, plural, size, spaced
from traceforge.report.glossary import GLOSSARY
from traceforge.report.plugin import Plugin

_HASH_LETTERS = 16


def _build(context: Context) -> Section | Missing:
    files = context.rows("sections/appendix_files")
    summary = plural(len(files), "input file")
    inputs = Table.of(files, _FILE_COLUMNS, context.limits.table_rows, summary, ["sections/appendix_files"])
    blocks: list[Block] = [Subheading("Terms"), Definitions(GLOSSARY)]
    blocks += [Subheading("Input files"), inputs]
    blocks += [Subheading("Made with"), Definitions(_versions(context))]
    blocks.append(Subheading("Queries as executed"))
    blocks += [Code(query_anchor(query.name), query.title, query.sql) for query in context.executed.values()]
    blocks += [Subheading("Licences"), Code("licences", "Software contained in this file", asset("licences.txt"))]
    return Section(blocks)


def _rank(file: Row) -> str:
    return "—" if file["rank"] is None else f"{file['rank']} ({spaced(clean(file['rank_origin'], 40))})"


def _versions(context: Context) -> list[tuple[str, str]]:
    entries = [(clean(name, 60), clean(version, 120)) for name, version in context.versions.items()]
    if context.command:
        entries.append(("command", clean(context.command, 600)))
    return entries


_FILE_COLUMNS = (
    TableColumn("file", lambda file: clean(file["path"], 200), code=True, wide=True),
    TableColumn("kind", lambda file: clean(file["kind"], 40)),
    number("rank", _rank),
    TableColumn("host", lambda file: clean(file["host"] or "unknown", 80)),
    TableColumn("status", lambda file: spaced(clean(file["status"], 40))),
    number("events", lambda file: count(file["event_count"])),
    number("stored", lambda file: count(file["stored_count"])),
    number("size", lambda file: size(file["size_bytes"])),
    TableColumn("SHA-256", lambda file: clean(file["content_hash"], 80)[:_HASH_LETTERS], code=True),
)

SECTION = Plugin(1000, "How this was made", "SQL", _build)
