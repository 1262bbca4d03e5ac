"""Whoever recorded with another profiler is advised in its terms, or told what it cannot record."""

import pytest

from tests.doctor.examined import built_for_doctor
from tests.given import Trace, add_run
from traceforge.doctor.checks import examine
from traceforge.doctor.profilers import advice_for
from traceforge.records import Issue
from traceforge.store.database import Store
from traceforge.store.issues import issue_rows


@pytest.mark.parametrize(("profiler", "setting"), [("nsys", "nvtx.range"), ("xplane", "StepTraceAnnotation")])
def test_steps_are_marked_in_the_words_of_the_profiler(profiler: str, setting: str) -> None:
    assert setting in str(advice_for("steps", profiler))


@pytest.mark.parametrize("profiler", ["nsys", "rocprof", "rocpd", "xplane"])
@pytest.mark.parametrize(
    "code",
    ["communication", "matching", "clocks", "all_ranks", "steps", "iterations", "common_window", "devices", "hosts",
     "whole_files", "rank_known"],
)  # fmt: skip
def test_nobody_is_sent_to_the_settings_of_another_profiler(profiler: str, code: str) -> None:
    advice = advice_for(code, profiler)

    assert advice is not None
    assert "torch.profiler" not in advice[1]
    assert "pip install" not in advice[1]


@pytest.mark.parametrize(
    ("code", "profiler", "said"),
    [
        ("telemetry", "rocprof", "rocm-smi print is not read"),
        ("telemetry", "xplane", "On NVIDIA's GPUs"),
        ("nccl_log", "xplane", "on a TPU XLA writes none"),
        ("execution_traces", "xplane", "HLO module"),
        ("rank_known", "nsys", "numbers in names"),
        ("whole_files", "live_log", "Let the recorder end"),
        ("shapes", "live_log", "The recorder sees no operators"),
    ],
)
def test_what_a_profilers_devices_do_not_have_is_said(code: str, profiler: str, said: str) -> None:
    assert said in str(advice_for(code, profiler))


@pytest.mark.parametrize(("severity", "is_damage"), [("info", False), ("warning", True)])
def test_what_is_left_out_on_purpose_is_no_damage(severity: str, is_damage: bool) -> None:
    issue = Issue("xplane_profilers_own", severity, 2, None, "calls of the profiler", 2)
    with Store(None, threads=1, is_kept=False) as store:
        run_id = add_run(store, Trace(0).kernel(0, 50))
        store.append("meta.issue", issue_rows(run_id, None, "ingest", [issue]))
        built_for_doctor(store)
        (found,) = [one.evidence for one in examine(store, run_id) if one.check.code == "whole_files"]

    assert ("2 events lost" in found) == is_damage


def test_the_checks_own_advice_stands_for_all_others() -> None:
    assert advice_for("steps", "kineto") is None
    assert advice_for("steps", None) is None


@pytest.mark.parametrize(
    ("kinds", "setting"), [(("nsys", "nsys"), "nvtx.range"), (("nsys", "kineto"), "profiler.step()")]
)
def test_the_profiler_is_the_one_that_recorded_all(kinds: tuple[str, str], setting: str) -> None:
    with Store(None, threads=1, is_kept=False) as store:
        run_id = add_run(store, *(Trace(rank).kernel(0, 50).collective(50, 60) for rank in range(2)))
        for source_id, kind in enumerate(kinds):
            store.execute("UPDATE meta.source SET kind = ? WHERE source_id = ?", [kind, source_id])
        built_for_doctor(store)
        found = {one.check.code: one.check.setting for one in examine(store, run_id)}

    assert setting in found["steps"].split("#")[0]
