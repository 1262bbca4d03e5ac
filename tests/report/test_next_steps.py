"""What to do next: commands only look, and names of traces cannot change what they do."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from traceforge.report.device_tools import AMD, NVIDIA, DeviceTools, tools_of
from traceforge.report.diagnosis import Finding
from traceforge.report.job import JobOverview
from traceforge.report.next_steps import steps

FINDING = Finding(
    finding_id=0, mode="synchronization_amplification", cause="slow_compute", subject_kind="rank", subject="2",
    delay_ns=5e6, low_ns=4e6, high_ns=6e6, share=0.1, confidence="high", gain_if_fixed=0.1, first_iteration=1,
    last_iteration=9, pattern="persistent", summary="", next_step="", evidence_for=(), evidence_against=(),
    host="node2",
)  # fmt: skip


def commands(
    finding: Finding, *, is_other_work: bool = False, command: str | None = "traceforge report job.duckdb"
) -> list[str]:
    found = steps("Look at it.", finding, tools=NVIDIA, has_devices=True, is_other_work=is_other_work, command=command)
    return [step.command for step in found if step.command]


def test_a_slow_gpu_is_looked_at_on_its_host() -> None:
    assert commands(FINDING) == [
        "ssh node2 nvidia-smi -q -d CLOCK,POWER,PERFORMANCE",
        "traceforge sql job.duckdb --name slow_kernels",
        "traceforge compare job.duckdb NEW_TRACES",
    ]


def test_where_the_work_differs_the_hardware_is_no_suspect() -> None:
    assert not any("nvidia-smi" in command for command in commands(FINDING, is_other_work=True))


@pytest.mark.parametrize("host", ["node2; rm -rf /", "-oProxyCommand=x", "$(id)", "a b", "`id`", ""])
def test_a_host_that_a_shell_might_read_is_left_out(host: str) -> None:
    assert commands(replace(FINDING, host=host))[0] == "nvidia-smi -q -d CLOCK,POWER,PERFORMANCE"


@pytest.mark.parametrize(
    ("command", "target"),
    [
        ("traceforge report 'my traces; x'", "'my traces; x'"),
        ("traceforge report 'unfinished", "TRACES"),
        ("another thing", "TRACES"),
        (None, "TRACES"),
    ],
)
def test_the_target_is_quoted_or_left_open(command: str | None, target: str) -> None:
    assert commands(FINDING, command=command)[-1] == f"traceforge compare {target} NEW_TRACES"


@pytest.mark.parametrize(
    ("has_devices", "is_one_host", "look"),
    [(True, False, "rdma statistic"), (True, True, "nvidia-smi nvlink"), (False, True, "top -b")],
)
def test_transfers_within_a_host_pass_no_nic(has_devices: bool, is_one_host: bool, look: str) -> None:
    slow = replace(FINDING, cause="slow_transfer", subject_kind="job", subject="all")
    found = steps(
        "", slow, tools=NVIDIA, has_devices=has_devices, is_other_work=False, command=None, is_one_host=is_one_host
    )
    assert look in found[0].command


@pytest.mark.parametrize(
    ("world_size", "hosts", "is_one"),
    [(2, "aa", True), (None, "aa", True), (4, "aa", False), (2, "ab", False), (2, ("a", None), False)],
)
def test_a_job_is_of_one_host_where_every_rank_is_known_to_be(
    world_size: int | None, hosts: Sequence[str | None], is_one: bool
) -> None:
    job = JobOverview("job", world_size, dict(enumerate(hosts)), sources=(), iterations=())
    assert job.is_one_host == is_one


@pytest.mark.parametrize(
    ("names", "tools"),
    [
        (["NVIDIA H100 80GB HBM3"], NVIDIA),
        (["Tesla V100-SXM2-16GB", "A100-SXM4-80GB"], NVIDIA),
        ([], NVIDIA),
        (["AMD Instinct MI300X VF"], AMD),
        (["AMD Radeon Graphics", "gfx942"], AMD),
        (["TPU v6 Lite"], None),
        (["NVIDIA A100-SXM4-80GB", "AMD Instinct MI250X"], None),
    ],
)
def test_a_device_is_looked_at_with_the_tools_of_its_maker(names: list[str], tools: DeviceTools | None) -> None:
    assert tools_of(names) == tools


@pytest.mark.parametrize(
    ("cause", "look"),
    [("slow_compute", "amd-smi metric --clock"), ("slow_path", "amd-smi topology"), ("slow_transfer", "--xgmi-err")],
)
def test_commands_are_those_that_the_hosts_have(cause: str, look: str) -> None:
    finding = replace(FINDING, cause=cause)
    found = [
        steps("", finding, tools=tools, has_devices=True, is_other_work=False, command=None, is_one_host=True)
        for tools in (AMD, None)
    ]
    assert look in found[0][0].command
    # of a device whose maker is not known nothing is to be run but queries
    assert all(step.command.startswith("traceforge") for step in found[1])


def test_without_a_finding_only_the_advice_is_left() -> None:
    found = steps("Record more.", None, tools=NVIDIA, has_devices=False, is_other_work=False, command=None)
    assert [(step.text, step.command) for step in found] == [("Record more.", "")]


@pytest.mark.parametrize(("hang", "look"), [("absent", "py-spy dump --pid"), ("stuck", "grep -i xid"), ("unknown", "")])
def test_a_hang_is_looked_at_with_a_command_where_one_tells_more(hang: str, look: str) -> None:
    found = steps("Look at it.", None, tools=NVIDIA, has_devices=False, is_other_work=False, command=None, hang=hang)
    assert found[0].text == "Look at it."
    assert [step.command.endswith(look) for step in found[1:]] == ([True] if look else [])
