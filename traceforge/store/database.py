"""One DuckDB file, or a folder. In: batches of rows and SQL. Out: tables, and query results as polars frames.

Questions to it are `answers`; only this folder speaks to DuckDB. Files are written in DuckDB's v1.0 storage format with
blocks of 64 KiB, which any client since 1.1 opens: at DuckDB's usual 256 KiB the many small tables of a small run are
mostly empty space, and below 64 KiB long columns compress worse. Rows come in as Arrow streams or Parquet, which polars
and DuckDB read without pyarrow. Of a folder database (see `folder`) the catalogue is the DuckDB file, raw tables are
views over the partitions beside it, which are checked before anything is asked of them.
Not handled: several writers at once (DuckDB locks the file; the second gets an error).
"""

import shutil
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self, TypeVar, TypeVarTuple, cast

from traceforge.errors import InputUnusableError, QueryError, StoreBusyError
from traceforge.store.allocator import give_back_freed
from traceforge.store.answers import Answers
from traceforge.store.arrow import ArrowStream
from traceforge.store.closing import write_out
from traceforge.store.damage import damaged_file, damaged_partition
from traceforge.store.documents import Document, comment_statements
from traceforge.store.folder import Folder, Partition, is_folder_name
from traceforge.store.kept_thresholds import keep_thresholds
from traceforge.store.migrations import migrate, refuse_newer
from traceforge.store.opening import (
    check_place,
    literal_of,
    make_empty,
    no_traces,
    open_error,
    prepare_folder,
    remove_database,
)
from traceforge.store.partitions import (
    check_columns,
    checked_partitions,
    create_registry,
    refuse_changed_form,
    registered,
    views_over,
)
from traceforge.store.places import SpillFolder, own_folder, place_beside, sweep_beside
from traceforge.store.shown_files import ShownFiles
from traceforge.store.transaction import transaction
from traceforge.store.trust import NOTHING, applied_migration, check_form, relations_of

if TYPE_CHECKING:
    import polars as pl

_STORAGE_VERSION = "v1.0.0"
_BLOCK_BYTES = 65_536
_CATALOG = "trace"
_KEPT_BYTES = 32 * 1024 * 1024
_WORTH_RELEASING_BYTES = 64 * 1024 * 1024
_SAFE: dict[str, str | bool | int | float | list[str]] = {
    **dict.fromkeys(("autoinstall_known_extensions", "autoload_known_extensions", "allow_community_extensions"), False),
    # Beyond it threads give memory back; 128 MiB are rarely reached at once. Smaller pieces go back without them.
    "allocator_flush_threshold": "16MB",
    "allocator_background_threads": True,
}
_BESIDE = ("wal", "wal.checkpoint", "wal.recovery")

Value = TypeVar("Value")
Arguments = TypeVarTuple("Arguments")


class Store(Answers):
    """A trace database, open for reading or writing.

    Use as a context manager; a new file into which nothing was ingested because of an error is removed again.

    Attributes:
        path: of the file or the folder; None in memory.
        folder: where its partitions lie; None of a file.
        read_only: whether nothing may be changed.
        scratch: the only folder whose files SQL may read and write; made where it is needed, see `places.own_folder`.
    """

    def __init__(
        self,
        path: Path | str | None,
        *,
        read_only: bool = False,
        threads: int | None = None,
        is_kept: bool = True,
        readable: Sequence[Path] | None = None,
    ) -> None:
        """Open or create a database; None keeps it in memory.

        Args:
            path: of the file, or of a folder: a text that ends in `/`, or a folder that is a database already.
            read_only: refuse every change.
            threads: how many DuckDB may use; as many as there are cores when None.
            is_kept: whether others will open it; one for a moment gets no comments, a third of the time of a small run.
            readable: of one in memory that its maker gives all its tables: folders that SQL may read and write.

        SQL reaches the file, its partitions, its scratch folder and `readable`: no other file, extension or network.

        Raises:
            InputUnusableError: the file is missing (when read only) or is no trace database.
            StoreBusyError: another process holds it.
            StoreTooNewError: a newer traceforge wrote it.
        """
        import duckdb

        self.folder = Folder(Path(path).absolute()) if path is not None and is_folder_name(path) else None
        self.path = None if path is None else Path(path)
        self._file = file = self.folder.catalogue if self.folder else self.path
        self.scratch = place_beside(file, is_shared=read_only)
        self.read_only = read_only
        self._is_kept = is_kept
        check_place(path, file, read_only=read_only)
        self._is_new = file is not None and not file.exists()
        if self.folder:
            prepare_folder(self.folder)
        self._kept: dict[tuple[object, ...], object] | None = None
        self._spill = SpillFolder(file, is_shared=read_only)
        self._connection = duckdb.connect(config=_SAFE | ({"threads": threads} if threads else {}))
        self._shown = ShownFiles(self._connection)
        try:
            if file is not None:
                self._connection.execute("SET temp_directory = ?", [str(self._spill.path)])
            self._connection.execute("SET preserve_insertion_order = true")
            # DuckDB draws one on stdout, among the data, wherever Python looks interactive (also `python -c`). An ASOF
            # join whose left side seems to have a few rows would compare each of them with every row of the right.
            self._connection.execute("SET enable_progress_bar = false; SET asof_loop_join_threshold = 0")
            self._attach(file, read_only)
            self._adopt(read_only, readable)
        except BaseException as error:
            self._connection.close()  # else the file is held for as long as the error lives
            self._spill.close()
            if self._is_new and not isinstance(error, StoreBusyError):
                remove_database(file, self.folder)
            self._refuse_damaged(error)
            raise

    def _attach(self, path: Path | None, read_only: bool) -> None:
        import duckdb

        options = "TYPE duckdb"  # a trace, without the type, is a database in memory, which is lost
        if path is not None:
            options += ", READ_ONLY" if read_only else f", STORAGE_VERSION '{_STORAGE_VERSION}'"
        if self._is_new:
            options += f", BLOCK_SIZE {_BLOCK_BYTES}"  # a file keeps the size it was made with
        try:
            if self._is_new and path is not None and self._spill.own is not None:
                self._is_new = make_empty(self._connection, path, self._spill.own, options)
            self._connection.execute(f"ATTACH {literal_of(path)} AS {_CATALOG} ({options})")
        except (duckdb.Error, OSError) as error:
            raise open_error(path, error, self._is_new) from error

    def _adopt(self, read_only: bool, readable: Sequence[Path] | None) -> None:
        found = NOTHING if self._file is None else relations_of(self._rows, _CATALOG)
        applied = applied_migration(self._rows, _CATALOG, found)
        if applied is None and (read_only or "table" in found.kinds.values()):
            raise no_traces(self.path, found.kinds)
        refuse_newer(applied, where=str(self.path))
        partitions = checked_partitions(self._rows, _CATALOG, found, self.folder, applied, self._file)
        if applied is not None:
            check_form(self._rows, _CATALOG, found, applied, self.path, views_over(partitions, applied))
        self._connection.execute(f"USE {_CATALOG}")
        own_folders = [self.scratch, *([self.folder.facts] if self.folder else []), *(readable or ())]
        self._connection.execute("SET allowed_directories = ?", [list(map(str, own_folders))])
        # Its own files are open to it anyway, but for names that look like those of files in the web.
        stem, mark, rest = str(self._file).partition("?")
        own = [] if self._file is None else [str(self._file), *(f"{stem}.{end}{mark}{rest}" for end in _BESIDE)]
        self._connection.execute("SET allowed_paths = ?", [own])
        self._connection.execute("SET enable_external_access = false")
        if self.folder and partitions:
            self.publish_partitions(partitions)
            check_columns(self._rows, self.folder, partitions, applied)
        if self._file is not None:
            sweep_beside(self._file, is_shared=read_only)
        if not read_only and readable is None:
            refuse_changed_form(partitions, applied, self.path)
            self._bring_up(applied)

    def publish_partitions(self, partitions: Sequence[Partition]) -> None:
        """Have the views over partitions, and those that are made now, read these files."""
        if self.folder is not None:
            self._shown.publish(self.folder, partitions)

    def narrowed(self, first_source_id: int | None, last_source_id: int | None) -> AbstractContextManager[None]:
        """Have the views over partitions read the files of some sources alone; None leaves them all."""
        if first_source_id is None or last_source_id is None:
            return nullcontext()
        return self._shown.narrowed(first_source_id, last_source_id)

    def partitions(self) -> list[Partition]:
        """All partitions of a folder database; none of a file."""
        return registered(self._rows, _CATALOG, self.folder.path) if self.folder else []

    def size_bytes(self) -> int | None:
        """Size on disk, with all partitions; None in memory."""
        if self.folder:
            return self.folder.size_bytes()
        return None if self.path is None else self.path.stat().st_size

    def _bring_up(self, applied: int | None) -> None:
        """Have the newest schema."""
        with self.transaction():
            migrate(self._connection.execute, applied, documented=self._is_kept)
            if self.folder:
                create_registry(self._rows)
            keep_thresholds(self._rows, self.execute, is_new=applied is None)

    def _rows(self, sql: str) -> list[tuple[Any, ...]]:
        return list(self._connection.execute(sql).fetchall())

    def __enter__(self) -> Self:
        return self

    def __exit__(self, _kind: object, error: BaseException | None, _trace: object) -> None:
        is_useless = error is not None and self._is_new and self._holds_nothing()
        self.close()
        if is_useless:
            remove_database(self._file, self.folder)
        self._refuse_damaged(error)

    def damage_behind(self, said: str) -> InputUnusableError | None:
        """The file of this database that is damaged, where that is why DuckDB failed."""
        return damaged_file(said, self._file) or damaged_partition(said, self._shown.files)

    def _refuse_damaged(self, error: BaseException | None) -> None:
        """Say what is damaged instead of what failed over it, here or in a worker; a new database cannot be."""
        import duckdb

        is_of_duckdb = isinstance(error, duckdb.Error | QueryError)
        if is_of_duckdb and not self._is_new and (damage := self.damage_behind(str(error))):
            raise damage from error

    def _holds_nothing(self) -> bool:
        """Whether no file was added; false of a connection that cannot be asked any more."""
        import duckdb

        try:
            return not self._rows("SELECT 1 FROM meta.source LIMIT 1")
        except duckdb.Error:
            return False

    def close(self) -> None:
        """Close the file; the object cannot be used afterwards."""
        write_out(self._connection, _CATALOG, None if self.read_only else self._file)
        self._connection.close()
        self._spill.close()

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All or nothing: what happens inside is undone if it raises."""
        import duckdb

        try:
            with transaction(self._connection):
                yield
        except BaseException:
            with suppress(duckdb.Error):  # of a connection that cannot be asked any more
                self._shown.show_all()
            raise

    @contextmanager
    def keeping(self) -> Iterator[None]:
        """Inside, `once` keeps what it computed: while a stage is built, no table changes after its first reader."""
        self._kept = {}
        try:
            yield
        finally:
            self._kept = None

    def once(self, compute: "Callable[[Store, *Arguments], Value]", *arguments: *Arguments) -> Value:
        """`compute(store, run_id)` or the like, computed once a stage; always anew where no stage is built.

        Args:
            compute: a function at the top of a module. What it returns is shared, so that nobody may change it.
        """
        if self._kept is None:
            return compute(self, *arguments)
        if (compute, *arguments) not in self._kept:
            self._kept[compute, *arguments] = compute(self, *arguments)
        return cast(Value, self._kept[compute, *arguments])

    @cached_property
    def _memory_limit(self) -> str:
        """The limit as first met: DuckDB states it in round numbers, so that one asked for each time would shrink."""
        ((limit,),) = self._connection.execute("SELECT current_setting('memory_limit')").fetchall()
        return str(limit)

    def release_beyond(self, limit_bytes: int = _WORTH_RELEASING_BYTES) -> None:
        """Let go of what is on disk where it is more than so much."""
        has_grown = give_back_freed()
        if self.folder is None and (self.path is None or self.path.stat().st_size <= limit_bytes):
            return  # seen without asking: a small run has one hundred tables, and this follows each
        if has_grown or self._rows("SELECT SUM(memory_usage_bytes) FROM duckdb_memory()")[0][0] > limit_bytes:
            self.release_memory()

    def release_memory(self) -> None:
        """Let go of what is on disk already; DuckDB would keep it in memory for as long as there is some.

        Only for a moment, and beside the transaction: a limit that lasts would make it fail on large rows.
        """
        import duckdb

        usual = self._memory_limit
        with self._connection.cursor() as other:
            try:
                other.execute(f"SET memory_limit = '{_KEPT_BYTES} B'")
            except duckdb.OutOfMemoryException:
                pass  # more than that is in use
            finally:
                # Not by RESET, after which DuckDB 1.5 shows the former limit and still holds to the low one.
                other.execute(f"SET memory_limit = '{usual}'")

    def execute(self, sql: str, parameters: Sequence[object] = ()) -> None:
        """Run a statement of our own that returns no rows."""
        self._connection.execute(sql, list(parameters))

    def append(self, table: str, rows: "pl.DataFrame", *, source_id: int | None = None) -> None:
        """Add rows to a table by column name, with their `source_id`; columns that are missing become NULL.

        Raises:
            QueryError: the table has no column of some name.
        """
        import polars as pl

        if rows.is_empty():
            return
        # DuckDB takes no columns of NULLs that have no type.
        untyped = [name for name, dtype in rows.schema.items() if dtype == pl.Null]
        if untyped:
            rows = rows.with_columns(pl.col(untyped).cast(pl.Int32))
        # A view, made by `register`, would hold on to the rows until the commit; variables are not looked up in SQL
        # once access to files is off.
        incoming = self._connection.from_arrow(ArrowStream(rows))
        constants = {} if source_id is None else {"source_id": f"{source_id:d}"}
        own = {name: '"' + name + '"' for name in rows.columns}
        columns = self._connection.table(table).columns
        if unknown := own.keys() - set(columns):
            raise QueryError(f"{table} has no column {', '.join(sorted(unknown))}")
        incoming.project(", ".join(constants.get(name) or own.get(name, "NULL") for name in columns)).insert_into(table)

    def append_parquet(self, table: str, files: Sequence[Path], *, source_id: int | None = None) -> None:
        """Add the rows of Parquet files to a table by column name, with their `source_id`.

        One statement for all files: DuckDB then writes to disk as it reads, and memory stays flat.
        """
        own = "" if source_id is None else f"{source_id:d} AS source_id, "
        self._connection.execute(
            f"INSERT INTO {table} BY NAME SELECT {own}* FROM read_parquet(?, union_by_name = true)",
            [[str(file) for file in files]],
        )

    def append_from(self, other: "Store", table: str) -> None:
        """Add all rows of the same table of another database."""
        names = ", ".join('"' + name + '"' for name in self._connection.table(table).columns)
        rows = other._connection.sql(f"SELECT {names} FROM {table}")
        self._connection.from_arrow(ArrowStream(rows)).insert_into(table)

    def write_parquet(self, query: str, path: Path) -> None:
        """Write the rows of a query of our own to a Parquet file, without holding them in memory.

        Raises:
            InputUnusableError: the file cannot be written.
        """
        import duckdb

        try:
            with own_folder(self.scratch) as scratch:
                file = scratch / "rows.parquet"
                literal = str(file).replace("'", "''")
                self._connection.execute(f"COPY ({query}) TO '{literal}' (FORMAT PARQUET, COMPRESSION ZSTD)")
                shutil.move(file, path)
        except (duckdb.IOException, OSError) as error:
            raise InputUnusableError(f"cannot be written: {error}", where=str(path)) from error

    def create(self, document: Document) -> None:
        """Make a documented table or view, replacing an older one."""
        self._connection.execute(document.statement)
        if self._is_kept:
            self._connection.execute(";\n".join(comment_statements(document)))

    def lock_down(self) -> None:
        """Refuse changes of settings from now on: for SQL that a person typed."""
        self._connection.execute("SET lock_configuration = true")
