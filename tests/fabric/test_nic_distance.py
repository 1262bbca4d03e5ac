"""How far NICs are from GPUs, from topology files: places in a tree of devices, worked by hand."""

from pathlib import Path

from tests.fabric.logs import Process, fabric_of, fabric_of_folder
from tests.given import rows_of
from traceforge import api
from traceforge.store.database import Store

# cpu 0: switch 10 with GPU 13 and NIC 0; a second switch 20 below it with GPU 23; NIC 1 on the CPU's own bridge
# cpu 1: NIC 2
TOPOLOGY = """<system version="1">
  <cpu numaid="0">
    <pci busid="0000:10:00.0" class="0x060400">
      <pci busid="0000:13:00.0" class="0x030200"><gpu dev="0" rank="0"/></pci>
      <pci busid="0000:12:00.0" class="0x020700"><nic><net name="mlx5_0" dev="0"/></nic></pci>
      <pci busid="0000:20:00.0" class="0x060400">
        <pci busid="0000:23:00.0" class="0x030200"><gpu dev="1" rank="1"/></pci>
      </pci>
    </pci>
    <pci busid="0000:30:00.0" class="0x020700"><nic><net name="mlx5_1" dev="1"/></nic></pci>
  </cpu>
  <cpu numaid="1">
    <pci busid="0000:80:00.0" class="0x020700"><nic><net name="mlx5_2" dev="2"/></nic></pci>
  </cpu>
</system>"""


def judged(folder: Path, *processes: Process) -> Store:
    (folder / "topology.xml").write_text(TOPOLOGY, encoding="utf-8")
    if processes:
        text = "".join(f"{line}\n" for process in processes for line in process.lines)
        (folder / "nccl.log").write_text(text, encoding="utf-8")
    return fabric_of_folder(folder)


def connected(nic: int) -> list[Process]:
    """Ranks on two hosts, on the GPU with bus id 13, which use a NIC."""
    processes = []
    for rank, host in enumerate("ab"):
        process = Process(rank, host=host).says(
            f"comm 0xa0 rank {rank} nranks 2 cudaDev 0 busId 13000 commId 0xfeed - Init COMPLETE"
        )
        processes.append(process.sends(1 - rank, f"NET/IB/{nic}").receives(1 - rank, f"NET/IB/{nic}"))
    return processes


def test_the_class_of_a_path_follows_from_where_two_ways_up_meet(tmp_path: Path) -> None:
    with judged(tmp_path) as store:
        rows = rows_of(
            store,
            "SELECT pci_address, nic, path_type, gpu_numa_node, nic_numa_node, origin FROM fabric.nic_distance"
            " ORDER BY ALL",
        )

    assert rows == [
        ("0000:13:00.0", 0, "PIX", 0, 0, "xml"),
        ("0000:13:00.0", 1, "PHB", 0, 0, "xml"),
        ("0000:13:00.0", 2, "SYS", 0, 1, "xml"),
        ("0000:23:00.0", 0, "PXB", 0, 0, "xml"),
        ("0000:23:00.0", 1, "PHB", 0, 0, "xml"),
        ("0000:23:00.0", 2, "SYS", 0, 1, "xml"),
    ]


def test_a_topology_file_tells_that_a_rank_uses_a_far_nic(tmp_path: Path) -> None:
    with judged(tmp_path, *connected(2)) as store:
        rows = rows_of(store, "SELECT subject, summary FROM fabric.finding WHERE code = 'far_nic' ORDER BY subject")

    assert [subject for subject, _ in rows] == ["0", "1"]
    assert rows[0][1] == (
        "Rank 0 uses NIC 2, at distance SYS from its GPU (NUMA node 1, the GPU is on 0), although NIC 0 is at PIX."
    )


def test_a_near_nic_is_no_finding(tmp_path: Path) -> None:
    with judged(tmp_path, *connected(0)) as store:
        assert rows_of(store, "SELECT code FROM fabric.finding WHERE code = 'far_nic'") == []


def test_what_nccl_printed_counts_more_than_a_file(tmp_path: Path) -> None:
    # given a log that says NIC 2 is near after all
    first, second = connected(2)
    for process in (first, second):
        process.says("GPU/0-13000 :NET/0-0 (5/12.0/SYS) NET/0-2 (3/24.0/PIX) ")

    with judged(tmp_path, first, second) as store:
        assert rows_of(store, "SELECT code FROM fabric.finding WHERE code = 'far_nic'") == []


def test_the_report_says_how_far_each_rank_is_from_its_nic(tmp_path: Path) -> None:
    # given a file that counts for both hosts, and a log of one of them that says otherwise
    first, second = connected(2)
    first.says("GPU/0-13000 :NET/0-2 (3/24.0/PIX) ")

    with judged(tmp_path, first, second) as store:
        api.analyze(store)
        html = api.report(store).html

    table = html.partition("path to it")[2].partition("</table>")[0]
    assert "<code>PIX</code>" in table
    assert "<code>SYS</code>" in table
    # one connection out and one in, counted once though two dumps tell the distance
    assert table.count(">2</td>") == 2


def test_numbers_of_nics_in_a_log_of_the_topology_are_hexadecimal() -> None:
    # given a host with more than ten NICs, of which the GPU uses the twelfth
    first, second = (Process(rank, host="ab"[rank]).init() for rank in range(2))
    first.says(
        "=== System : maxBw 48.0 totalBw 48.0 ===",
        "GPU/0-10000 :NET/0-1 (5/12.0/SYS) NET/0-c (3/24.0/PIX) NET/0-10 (5/12.0/SYS) ",
    )
    first.sends(1, "NET/IB/12/GDRDMA")

    with fabric_of([first, second]) as store:
        rows = rows_of(store, "SELECT nic, path_type FROM fabric.nic_distance ORDER BY nic")
        found = rows_of(store, "SELECT code FROM fabric.finding")

    assert rows == [(1, "SYS"), (12, "PIX"), (16, "SYS")]
    assert found == []
