"""What the README promises of damage, bombs, interruption, privacy and hostile files, each with the tests that hold it.

A promise that is worded anew, or a test that is renamed or removed, fails here.
"""

import ast

import pytest

from tests.conftest import ROOT

PROMISES = {
    "Damaged files give what is whole, and each repair and loss is a row of `meta.issue`.": (
        "tests/sources/test_kineto_damage.py::test_a_file_cut_inside_an_event_keeps_all_events_before",
        "tests/sources/test_kineto_damage.py::test_a_cut_gzip_file_is_read_to_its_last_byte",
        "tests/sources/test_chakra_damage.py::test_a_cut_file_gives_every_node_before_the_cut",
        "tests/test_archives.py::test_of_a_member_that_is_cut_off_there_is_what_precedes_the_cut",
        "tests/test_inflate.py::test_zstd_frames_may_begin_with_what_is_to_be_skipped",
        "tests/test_inflate.py::test_a_damaged_zstd_file_ends_at_the_damage",
        "tests/store/test_ingest.py::test_rows_read_are_rows_stored_plus_rows_counted",
        "tests/store/test_ingest.py::test_whatever_a_reader_raises_costs_its_file_alone",
        "tests/fuzz/test_formats.py::test_changed_files_of_every_format_break_no_promise",
        "tests/fuzz/test_kineto_fuzz.py::test_seeds_and_their_mutations_break_no_promise",
    ),
    "`.pftrace` above 1 GiB, XPlane files, rocprofv3's JSON and flight recorder dumps above 512 MiB, answers of "
    "Prometheus above 256 MiB and topologies above 64 MiB are refused.": (
        "tests/sources/test_largest_files.py::test_a_file_beyond_the_largest_size_is_refused_whole",
    ),
    "A file that inflates beyond 1 GiB and 500 times its size is read up to there, as if cut off": (
        "tests/test_inflate.py::test_a_trap_is_left_at_the_limit",
        "tests/sources/test_inspector_lines.py::test_of_lines_that_are_too_long_nothing_is_kept",
        "tests/sources/test_flight_recorder.py::test_lists_that_double_with_every_step_are_refused",
    ),
    "takes more than 600 s of CPU time or 2 GiB of memory to read (`--file-seconds`, `--file-memory-mib`), or crashes "
    "its reader, is left out, and the others are read.": (
        "tests/store/test_budget.py::test_a_file_that_costs_too_much_is_an_issue_and_the_others_are_read",
        "tests/store/test_budget.py::test_the_limits_are_options_of_the_command",
        "tests/sources/test_kineto_bounds.py::test_threads_beyond_the_bound_are_left_out_of_events_and_counted",
        "tests/sources/test_kineto_bounds.py::test_of_metadata_beyond_the_bound_the_first_process_groups_are_kept",
        "tests/sources/test_kineto_bounds.py::test_names_beyond_the_bound_become_one_and_are_counted",
        "tests/sources/test_nccl_log_lines.py::test_records_of_processes_beyond_the_bound_are_kept_without_theirs",
        "tests/sources/test_nccl_log_lines.py::test_records_of_communicators_beyond_the_bound_are_kept_without_theirs",
        "tests/sources/test_nccl_log_lines.py::test_calls_on_pointers_beyond_the_bound_are_kept_without_a_communicator",
    ),
    "run an interrupted ingest again to finish it": (
        "tests/store/test_interruption.py::test_after_kill_9_at_any_moment_files_are_whole_and_running_again_finishes",
        "tests/store/test_interruption.py::test_a_disk_that_is_really_full_costs_no_file_that_was_whole",
        "tests/fuzz/test_kills.py::test_a_killed_command_leaves_nothing_and_runs_again",
    ),
    "128 + N ended by signal N": (
        "tests/cli/test_process.py::test_a_signal_ends_readers_and_temporary_files_at_once",
        "tests/cli/test_process.py::test_readers_die_with_a_parent_that_is_killed",
        "tests/cli/test_process.py::test_workers_that_make_tables_die_with_a_parent_that_is_killed",
        "tests/cli/test_process.py::test_a_signal_that_a_library_reports_as_an_error_of_its_own_is_still_that_signal",
        "tests/cli/test_process.py::test_what_a_killed_report_left_is_removed_by_the_next_one",
        "tests/cli/test_process.py::test_what_does_not_end_after_a_signal_is_ended_with_its_code",
        "tests/store/test_places.py::test_a_signal_while_a_folder_is_made_or_removed_leaves_nothing",
        "tests/store/test_workers.py::test_readers_that_are_killed_are_given_up_without_a_word",
    ),
    "A file is not read twice": (
        "tests/store/test_ingest.py::test_a_file_that_is_known_is_not_read_again_under_any_name",
        "tests/store/test_ingest.py::test_a_whole_file_takes_the_place_of_the_one_that_was_cut_off",
    ),
    "No answer is written over a trace or a database.": (
        "tests/cli/test_outputs.py::test_no_answer_is_written_over_a_trace_or_a_database",
        "tests/cli/test_outputs.py::test_two_answers_do_not_share_a_file",
        "tests/store/test_opening.py::test_a_trace_is_no_database",
    ),
    "is one file that opens from disk, loads nothing and runs nothing that a trace contains": (
        "tests/report/test_names.py::test_the_page_holds_only_our_own_scripts",
        "tests/report/test_names.py::test_nothing_is_loaded_from_anywhere",
        "tests/e2e/test_hostile_names.py::test_a_report_holds_names_as_text_in_all_its_forms",
    ),
    "It works offline and sends nothing anywhere.": (
        "tests/e2e/test_offline.py::test_no_command_asks_the_network",
        "tests/report/test_names.py::test_nothing_is_loaded_from_anywhere",
    ),
    "a prompt on a terminal; read-only": (
        "tests/cli/test_sql.py::test_files_settings_and_the_database_itself_are_out_of_reach",
        "tests/store/test_trust.py::test_sql_reaches_nothing_beside_the_database",
    ),
    "whole up to the last second after `kill -9`": (
        "tests/live/test_recorder.py::test_a_killed_process_leaves_what_it_had_flushed",
    ),
    "whatever fails in a hook leaves training alone": (
        "tests/live/test_recorder.py::test_a_hook_that_fails_is_counted_and_given_up",
        "tests/live/test_recorder.py::test_a_disk_that_fails_ends_the_recording_and_not_the_job",
        "tests/live/test_pacing.py::test_a_policy_that_fails_ends_pacing_and_not_training",
    ),
    "`--redact` leaves names out": (
        "tests/export/test_redacted.py::test_parquet_tells_no_name_and_keeps_every_row",
        "tests/export/test_redacted.py::test_chakra_traces_tell_no_name_and_keep_their_nodes",
        "tests/export/test_redacted.py::test_the_archive_tells_no_name_although_traces_are_in_it",
        "tests/test_redaction.py::test_a_redacted_sample_holds_none_of_its_names",
    ),
    "Data goes to stdout, everything else to stderr.": (
        "tests/cli/test_process.py::test_what_a_stream_does_not_take_changes_no_exit_code",
        "tests/cli/test_process.py::test_remarks_that_nobody_reads_end_no_ingest",
        "tests/cli/test_process.py::test_a_stream_that_takes_nothing_is_said_so",
    ),
    "other files in it are left alone": (
        "tests/store/test_places.py::test_a_folder_of_the_users_is_left_alone_and_another_name_taken",
    ),
    "partitions that are missing, cut, links, or of other columns than they should be are refused": (
        "tests/store/test_folder_trust.py::test_files_that_are_not_as_they_were_written_are_refused",
        "tests/store/test_folder_trust.py::test_files_with_other_columns_are_refused_before_a_view_shows_them",
        "tests/store/test_trust.py::test_what_is_not_as_we_make_it_is_refused",
    ),
}
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_of_the_readme_is_held_by_tests_that_exist(promise: str) -> None:
    assert promise in README
    for named in PROMISES[promise]:
        file, _, name = named.partition("::")
        tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
        assert name in {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}, named
