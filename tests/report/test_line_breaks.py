"""Where lines may break: not between a number and its unit, not within an option, and in a long name at its joints."""

from traceforge.report.line_breaks import breakable, options_apart, unbroken


def test_a_number_is_never_parted_from_its_unit() -> None:
    told = "2.6 %, 8.6 ms and 3 MB in 4 steps".replace(" ", "_")
    joined = unbroken("2.6 %, 8.6 ms and 3 MB in 4 steps").replace(" ", "_").replace("\N{NO-BREAK SPACE}", "~")
    assert joined == told.replace("6_%", "6~%").replace("6_ms", "6~ms").replace("3_MB", "3~MB")


def test_thousands_are_set_apart_by_a_narrow_space_everywhere() -> None:
    assert unbroken("1,762 kernels of 2,000,000") == "1\u202f762 kernels of 2\u202f000\u202f000"
    assert unbroken("ranks 1, 200, a1,200, [1,2], 1,2345") == "ranks 1, 200, a1,200, [1,2], 1,2345"
    assert unbroken("aten::mm [[480,230],[230,384]]") == "aten::mm [[480,230],[230,384]]"


def test_options_of_commands_are_told_apart_from_words_with_hyphens() -> None:
    assert options_apart("py-spy dump --pid, or (nvidia-smi topo -m) on non-idle ranks 2-9 - or") == [
        "py-spy dump ", "--pid", ", or (nvidia-smi ", "topo -m", ") on non-idle ranks 2-9 - or",
    ]  # fmt: skip


def test_what_bounds_a_job_and_a_run_of_ranks_stay_on_one_line() -> None:
    assert options_apart("Launch-bound: ranks 8\N{EN DASH}15 (late)") == [
        "", "Launch-bound:", " ranks ", "8\N{EN DASH}15", " (late)",
    ]  # fmt: skip


def test_a_long_name_may_break_behind_its_joints_and_a_short_one_nowhere() -> None:
    assert breakable("of EXPERT_MODEL_PARALLEL_GROUP (ranks 8)") == (
        "of EXPERT_<wbr>MODEL_<wbr>PARALLEL_<wbr>GROUP (ranks 8)"
    )
    assert breakable("jobs/nccl.node0.1001.log.gz, line 155") == (
        "jobs/<wbr>nccl.<wbr>node0.<wbr>1001.<wbr>log.<wbr>gz, line 155"
    )
    assert breakable("all_reduce of mesh_dp") == "all_reduce of mesh_dp"


def test_a_name_that_is_html_stays_text_where_it_may_break() -> None:
    assert breakable("<img_src=x_onerror=alert_of_a_name>") == "&lt;img_src=x_onerror=alert_of_a_name&gt;"
    assert breakable("a_very_long_name_<script>") == "a_very_long_name_&lt;script&gt;"
    assert breakable("some_very_long_name_&_another") == ("some_<wbr>very_<wbr>long_<wbr>name_&amp;_another")
