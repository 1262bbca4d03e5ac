"""NICs have the numbers by which connections name them, with what is said of their devices before they get one."""

from tests.fabric.logs import Process, fabric_of

NICS = "SELECT nic, name, link, speed_bytes_per_s FROM fabric.nic ORDER BY nic"


def device(number: int, name: str, *, speed: int = 200_000, port: int = 1) -> str:
    """A device as libibverbs numbers it."""
    return (
        f"NET/IB: [{number}] {name}:uverbs{number}:{port}/RoCE provider=Mlx5 speed={speed} context=0x5 "
        "pciPath=/sys/x ar=0"
    )


def test_a_nic_is_not_named_by_its_number_in_libibverbs() -> None:
    # given four devices of which the second and the fourth have a link
    process = Process(0).says(
        device(1, "mlx5_1", speed=200_000),
        "NET/IB : Made virtual device [0] name=mlx5_1 speed=200000 ndevs=1",
        device(3, "mlx5_3", speed=400_000),
        "NET/IB : Made virtual device [1] name=mlx5_3 speed=400000 ndevs=1",
        "NET/IB : Using [0]mlx5_1:1/RoCE [1]mlx5_3:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
    )

    with fabric_of([process], asked="fabric.nic") as store:
        rows = store.query(NICS).rows()

    assert rows == [(0, "mlx5_1", "RoCE", 25_000_000_000), (1, "mlx5_3", "RoCE", 50_000_000_000)]


def test_the_speed_of_a_device_is_that_of_its_port() -> None:
    process = Process(0).says(
        device(0, "mlx5_0", speed=100_000),
        device(0, "mlx5_0", speed=400_000, port=2),
        "NET/IB : Using [0]mlx5_0:2/RoCE [RO]; OOB eth0:10.0.0.1<0>",
    )

    with fabric_of([process], asked="fabric.nic") as store:
        rows = store.query(NICS).rows()

    assert rows == [(0, "mlx5_0", "RoCE", 50_000_000_000)]


def test_a_plug_in_for_infiniband_under_another_name_lists_its_nics() -> None:
    process = Process(0).says(
        device(1, "mlx5_1", speed=400_000).replace("NET/IB", "NET/gIB"),
        "NET/gIB : Initializing gIB v1.0.2",
        "NET/gIB : Using [0]mlx5_1:1/RoCE [RO]; OOB eth0:10.0.0.1<0>",
    )

    with fabric_of([process], asked="fabric.nic") as store:
        rows = store.query("SELECT network, nic, name, speed_bytes_per_s FROM fabric.nic").rows()
        versions = store.query("SELECT component, version FROM raw.nccl_version").rows()

    assert rows == [("gIB", 0, "mlx5_1", 50_000_000_000)]
    assert versions == [("gib", "1.0.2")]


def test_a_nic_that_has_no_gpu_direct_rdma_is_named_as_one() -> None:
    first, second = (Process(rank, host="ab"[rank]).init() for rank in range(2))
    first.says("NET/IB : GPU Direct RDMA Disabled for HCA 0 'mlx5_0'").sends(1, "NET/IB/0")
    second.receives(0, "NET/IB/0")

    with fabric_of([first, second], asked="fabric.finding") as store:
        (summary,) = store.query("SELECT summary FROM fabric.finding WHERE code = 'gdr_off'").rows()[0]

    assert summary.endswith("they copy through host memory; NCCL says: disabled for NIC mlx5_0.")
