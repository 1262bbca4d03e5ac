"""What the README promises of damage, bombs, interruption, privacy and hostile files, each with the tests that hold it.

Below are the kinds of attack that once got through (`tests/fuzz/RESULTS.md` has their recipes), likewise with tests.
A promise that is worded anew, or a test that is renamed or removed, fails here.
"""

import ast
from functools import cache

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
        "tests/store/test_ingest_damage.py::test_whatever_a_reader_raises_costs_its_file_alone",
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
        "tests/store/test_ingest_damage.py::test_a_whole_file_takes_the_place_of_the_one_that_was_cut_off",
    ),
    "No answer is written over a trace or a database": (
        "tests/cli/test_outputs.py::test_no_answer_is_written_over_a_trace_or_a_database",
        "tests/cli/test_outputs.py::test_two_answers_do_not_share_a_file",
        "tests/cli/test_outputs.py::test_where_the_disk_is_full_the_earlier_answer_stays",
        "tests/test_notebook.py::test_a_page_is_not_written_over_a_database",
        "tests/store/test_opening.py::test_a_trace_is_no_database",
    ),
    "`synth` and `demo` write into no folder of other files": (
        "tests/cli/test_outputs.py::test_made_up_traces_are_not_written_among_recorded_ones",
        "tests/cli/test_outputs.py::test_a_demo_is_not_written_over_a_trace",
        "tests/cli/test_outputs.py::test_a_scenario_is_not_written_over",
    ),
    "an exported file or folder is whole or not there": (
        "tests/export/test_perfetto.py::test_of_an_archive_for_which_the_disk_is_too_small_nothing_is_left",
        "tests/export/test_parquet.py::test_of_tables_for_which_the_disk_is_too_small_nothing_is_left",
        "tests/export/test_chakra.py::test_of_a_file_for_which_the_disk_is_too_small_nothing_is_left",
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
        "tests/cli/test_streams.py::test_what_a_stream_does_not_take_changes_no_exit_code",
        "tests/cli/test_streams.py::test_remarks_that_nobody_reads_end_no_ingest",
        "tests/cli/test_streams.py::test_a_stream_that_takes_nothing_is_said_so",
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
ATTACKS = {
    "Opening a strange database reads and runs nothing of its maker's": (
        "tests/store/test_trust.py::test_what_is_not_as_we_make_it_is_refused",
        "tests/store/test_trust.py::test_a_view_of_ours_that_reads_otherwise_is_refused",
        "tests/store/test_trust.py::test_no_command_reads_a_file_that_a_database_names",
        "tests/store/test_trust.py::test_rows_still_leave_as_parquet_wherever_the_user_wants_them",
        "tests/store/test_folder_trust.py::test_a_catalogue_that_is_not_as_we_write_it_is_refused",
        "tests/store/test_folder_trust.py::test_a_file_that_is_no_parquet_is_refused",
        "tests/fuzz/test_recipes.py::test_an_attack_ends_as_promised",
    ),
    "A file fails alone": (
        "tests/store/test_ingest_damage.py::test_whatever_a_reader_raises_costs_its_file_alone",
        "tests/store/test_ingest_damage.py::test_a_file_that_fails_leaves_nothing_of_itself_and_is_counted",
        "tests/sources/test_flight_recorder.py::test_odd_values_cost_their_field_alone",
        "tests/fuzz/test_formats.py::test_changed_files_of_every_format_break_no_promise",
    ),
    "Every container has an end": (
        "tests/test_archives.py::test_archives_joined_one_behind_the_other_are_one",
        "tests/test_archives.py::test_a_damaged_header_costs_its_member_alone_and_is_counted",
        "tests/test_archives.py::test_an_archive_cut_between_members_says_so",
        "tests/test_archives.py::test_members_of_one_name_are_files_of_their_own",
        "tests/test_inflate.py::test_a_gzip_header_may_hold_64_kib_of_other_things",
        "tests/store/test_ingest_damage.py::test_a_whole_file_takes_the_place_of_the_one_that_was_cut_off",
        "tests/test_files.py::test_what_is_no_regular_file_is_passed_over_and_named",
    ),
    "Reading has limits of memory and of time": (
        "tests/test_inflate.py::test_a_trap_is_left_at_the_limit",
        "tests/store/test_budget.py::test_a_file_that_costs_too_much_is_an_issue_and_the_others_are_read",
        "tests/store/test_budget.py::test_the_limits_are_options_of_the_command",
        "tests/sources/test_flight_recorder.py::test_what_is_no_plain_value_is_refused",
        "tests/sources/test_flight_recorder.py::test_a_huge_memo_index_costs_nothing",
        "tests/sources/test_kineto_bounds.py::test_names_beyond_the_bound_become_one_and_are_counted",
    ),
    "Nothing lives on and nothing is left behind": (
        "tests/cli/test_process.py::test_readers_die_with_a_parent_that_is_killed",
        "tests/cli/test_process.py::test_a_first_ingest_that_fails_leaves_no_database",
        "tests/cli/test_streams.py::test_a_database_may_have_any_name",
        "tests/cli/test_streams.py::test_names_may_look_like_options",
        "tests/cli/test_streams.py::test_streams_may_be_closed",
        "tests/cli/test_streams.py::test_a_terminal_of_ascii_gets_escapes",
        "tests/cli/test_streams.py::test_places_where_nothing_can_be_written_are_said_so",
        "tests/cli/test_outputs.py::test_where_no_temporary_file_can_be_made_is_said",
        "tests/cli/test_outputs.py::test_what_is_written_has_the_rights_that_the_user_gives",
        "tests/store/test_places.py::test_a_folder_of_the_users_is_left_alone_and_another_name_taken",
        "tests/store/test_places.py::test_what_a_killed_process_left_is_swept_and_what_lives_is_not",
        "tests/export/test_perfetto.py::test_of_an_archive_for_which_the_disk_is_too_small_nothing_is_left",
        "tests/export/test_parquet.py::test_of_tables_for_which_the_disk_is_too_small_nothing_is_left",
        "tests/export/test_chakra.py::test_of_a_file_for_which_the_disk_is_too_small_nothing_is_left",
        "tests/fuzz/test_kills.py::test_a_killed_command_leaves_nothing_and_runs_again",
    ),
    "Outputs carry hostile names as text, and redacted ones carry none": (
        "tests/e2e/test_hostile_names.py::test_a_terminal_is_told_nothing",
        "tests/e2e/test_hostile_names.py::test_files_of_a_check_stay_well_formed",
        "tests/e2e/test_hostile_names.py::test_rows_of_csv_hold_no_formula",
        "tests/e2e/test_hostile_names.py::test_a_perfetto_archive_is_sound_and_leads_nowhere",
        "tests/e2e/test_hostile_names.py::test_parquet_and_chakra_files_are_named_by_us_and_hold_names_exactly",
        "tests/export/test_redacted.py::test_the_archive_tells_no_name_although_traces_are_in_it",
        "tests/test_redaction.py::test_a_redacted_sample_holds_none_of_its_names",
    ),
    "What is in a folder is recognised, or named as left out": (
        "tests/store/test_ingest.py::test_a_log_whose_first_known_line_stands_far_behind_is_found",
        "tests/store/test_ingest.py::test_files_of_no_known_kind_are_counted_together",
        "tests/sources/test_nccl_log_lines.py::test_launchers_prefixes_are_told_from_records",
        "tests/sources/test_nccl_log_lines.py::test_other_texts_are_no_logs",
    ),
    "Attacks are kept and run again": (
        "tests/fuzz/test_formats.py::test_every_format_is_fuzzed",
        "tests/fuzz/test_kineto_fuzz.py::test_seeds_and_their_mutations_break_no_promise",
        "tests/fuzz/test_scanner.py::test_changed_units_have_as_many_rows_as_events_or_are_declined",
        "tests/fuzz/test_kills.py::test_a_killed_command_leaves_nothing_and_runs_again",
        "tests/fuzz/test_recipes.py::test_an_attack_ends_as_promised",
    ),
}
README = " ".join((ROOT / "README.md").read_text(encoding="utf-8").split())


@pytest.mark.parametrize("promise", PROMISES)
def test_a_promise_of_the_readme_stands_there(promise: str) -> None:
    assert promise in README


@pytest.mark.parametrize(("held", "tests"), (PROMISES | ATTACKS).items())
def test_what_is_promised_is_held_by_tests_that_exist(held: str, tests: tuple[str, ...]) -> None:
    assert tests, held
    for named in tests:
        file, _, name = named.partition("::")
        assert name in _tests_of(file), named


@cache
def _tests_of(file: str) -> set[str]:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    return {node.name for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)}
