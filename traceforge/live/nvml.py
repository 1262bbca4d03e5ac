"""Clock, power and heat of the device that a rank computes on. In: NVML, PyTorch's current device. Out: rows, facts.

Idea: the training thread says once which device it uses; the recorder's own thread reads it once a second. The library
is the driver's own, called through ctypes. Without it, and of what it does not tell, there are no rows.
Not handled: several devices of one process (the one that is current when CUDA is first seen is read), slices of a
device (MIG), devices of other vendors.
"""

import ctypes
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any

from traceforge.live.layout import RowKind

if TYPE_CHECKING:
    from traceforge.live.recorder import Recorder

_LIBRARY = "libnvidia-ml.so.1"
_SM_CLOCK = 1
_DIE_TEMPERATURE = 0
_MOST_BITS = 2**48 - 1
_READINGS: tuple[tuple[str, tuple[str, ...], tuple[int, ...], Any], ...] = (
    ("sm_clock_mhz", ("nvmlDeviceGetClockInfo",), (_SM_CLOCK,), ctypes.c_uint),
    ("sm_clock_max_mhz", ("nvmlDeviceGetMaxClockInfo",), (_SM_CLOCK,), ctypes.c_uint),
    ("power_mw", ("nvmlDeviceGetPowerUsage",), (), ctypes.c_uint),
    ("power_limit_mw", ("nvmlDeviceGetEnforcedPowerLimit",), (), ctypes.c_uint),
    ("temperature_c", ("nvmlDeviceGetTemperature",), (_DIE_TEMPERATURE,), ctypes.c_uint),
    (
        "throttle_reasons",
        # The second is the name before driver 535.
        ("nvmlDeviceGetCurrentClocksEventReasons", "nvmlDeviceGetCurrentClocksThrottleReasons"),
        (),
        ctypes.c_ulonglong,
    ),
)
"""What is read: its name in the file, functions of NVML that tell it, their arguments, and the type of the answer."""


class _PciInfo(ctypes.Structure):
    """`nvmlPciInfo_t`."""

    _fields_ = (
        ("bus_id_legacy", ctypes.c_char * 16),
        ("domain", ctypes.c_uint),
        ("bus", ctypes.c_uint),
        ("device", ctypes.c_uint),
        ("pci_device_id", ctypes.c_uint),
        ("pci_subsystem_id", ctypes.c_uint),
        ("bus_id", ctypes.c_char * 32),
    )


class NvmlReadings:
    """Reads the current device of a PyTorch program.

    Args:
        torch: the library.
        load: finds NVML; None where there is none.
        system: where the kernel tells of PCI devices.
    """

    def __init__(
        self, torch: Any, load: Callable[[], Any] | None = None, system: Path = Path("/sys/bus/pci/devices")
    ) -> None:
        self._cuda = torch.cuda
        self._load = load or _driver
        self._system = system
        self._known: tuple[str, str] | None = None
        self._library: Any = None
        self._device: ctypes.c_void_p | None = None
        self._has_begun = False
        self._count = 0

    def install(self, recorder: "Recorder") -> Callable[[], None]:
        """Look for the device now and after each step until there is one; read it before each flush."""
        self._look()
        recorder.after_step(lambda *_: self._look())
        recorder.before_flush("NVML", lambda: self._read(recorder))
        return self._forget

    def _look(self) -> None:
        """Which device the training thread uses; nobody initialises CUDA for that."""
        if self._known is None and self._cuda.is_initialized():
            properties = self._cuda.get_device_properties(self._cuda.current_device())
            self._known = str(getattr(properties, "uuid", "")), str(properties.name)

    def _read(self, recorder: "Recorder") -> None:
        if self._known is None:
            return
        if not self._has_begun:
            self._has_begun = True
            self._begin(recorder, *self._known)
        if self._device is None:
            return
        tracks, now_ns = recorder.tracks, recorder.tracks.clock_ns()
        for metric, functions, arguments, kind in _READINGS:
            answer = kind()
            if any(self._told(name, *arguments, ctypes.byref(answer)) for name in functions):
                value = answer.value & _MOST_BITS
                tracks.add((RowKind.DEVICE, tracks.name(("device", metric)), now_ns, now_ns, value, self._count, 0))
        self._count += 1

    def _begin(self, recorder: "Recorder", uuid: str, name: str) -> None:
        """Find the device and tell which it is."""
        facts: dict[str, object] = {"uuid": uuid, "name": name}
        self._library = self._load() if uuid else None
        device = ctypes.c_void_p()
        written = uuid if uuid.startswith(("GPU-", "MIG-")) else f"GPU-{uuid}"
        found = self._library is not None and self._called("nvmlInit_v2")
        if found and self._called("nvmlDeviceGetHandleByUUID", written.encode(), ctypes.byref(device)):
            self._device = device
            facts |= self._place()
        if recorder.writer is not None:
            recorder.writer.tell({"device": facts})

    def _place(self) -> dict[str, object]:
        """PCI address and NUMA node, where they are known."""
        info = _PciInfo()
        if not self._told("nvmlDeviceGetPciInfo_v3", ctypes.byref(info)):
            return {}
        address = f"{info.domain:04x}:{info.bus:02x}:{info.device:02x}.0"
        try:
            node = (self._system / address / "numa_node").read_text(encoding="ascii").strip()
        except (OSError, UnicodeDecodeError):
            node = ""
        return {"pci": address, "numa_node": int(node) if node.isdigit() else None}

    def _told(self, function: str, *arguments: Any) -> bool:
        """Whether a function answered for our device."""
        return self._called(function, self._device, *arguments)

    def _called(self, function: str, *arguments: Any) -> bool:
        call = getattr(self._library, function, None)
        return call is not None and call(*arguments) == 0

    def _forget(self) -> None:
        """Read no more; NVML stays initialised, for others in the process may use it."""
        self._known = None


def _driver() -> Any:
    try:
        return ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
