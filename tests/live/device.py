"""A device that is not there. In: what it shall say. Out: stand-ins of PyTorch and of the driver's library.

The library's functions have the types of NVML's header and are called through C, as the driver's own would be.
"""

import ctypes
from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

from traceforge.live.nvml import NvmlReadings

UUID = "01234567-89ab-cdef-0123-456789abcdef"
_SUCCESS, _NOT_FOUND = 0, 6
_HANDLE = 0x5EED
_UINT, _ULONG = ctypes.POINTER(ctypes.c_uint), ctypes.POINTER(ctypes.c_ulonglong)


class PciInfo(ctypes.Structure):
    """`nvmlPciInfo_t` as its header has it."""

    _fields_ = (
        ("legacy", ctypes.c_char * 16),
        *((name, ctypes.c_uint) for name in ("domain", "bus", "device", "model", "maker")),
        ("bus_id", ctypes.c_char * 32),
    )


def function(*types: Any) -> Callable[[Callable[..., int]], Any]:
    return ctypes.CFUNCTYPE(ctypes.c_int, *types)


def driver(clock_mhz: int, *, reasons: int = 0, uuid: str = UUID, address: tuple[int, int, int] = (0, 0x81, 0)) -> Any:
    """The library, with one device: 1,755 MHz at most, 310.5 of 700 W, 61 degrees."""

    def found(name: bytes, device: Any) -> int:
        device[0] = _HANDLE
        return _SUCCESS if name.decode() == f"GPU-{uuid}" else _NOT_FOUND

    def place(device: int, told: int) -> int:
        info = PciInfo.from_address(told)
        info.domain, info.bus, info.device = address
        return _SUCCESS if device == _HANDLE else _NOT_FOUND

    def said(value: int) -> Callable[..., int]:
        def answer(device: int, *rest: Any) -> int:
            rest[-1][0] = value
            return _SUCCESS if device == _HANDLE else _NOT_FOUND

        return answer

    of_kind, plain = (ctypes.c_void_p, ctypes.c_uint, _UINT), (ctypes.c_void_p, _UINT)
    return SimpleNamespace(
        nvmlInit_v2=function()(lambda: _SUCCESS),
        nvmlDeviceGetHandleByUUID=function(ctypes.c_char_p, ctypes.POINTER(ctypes.c_void_p))(found),
        nvmlDeviceGetPciInfo_v3=function(ctypes.c_void_p, ctypes.c_void_p)(place),
        nvmlDeviceGetClockInfo=function(*of_kind)(said(clock_mhz)),
        nvmlDeviceGetMaxClockInfo=function(*of_kind)(said(1_755)),
        nvmlDeviceGetTemperature=function(*of_kind)(said(61)),
        nvmlDeviceGetPowerUsage=function(*plain)(said(310_500)),
        nvmlDeviceGetEnforcedPowerLimit=function(*plain)(said(700_000)),
        nvmlDeviceGetCurrentClocksThrottleReasons=function(ctypes.c_void_p, _ULONG)(said(reasons)),
    )


def torch_on_a_device(**more: Any) -> Any:
    """PyTorch after it used its device."""
    properties = SimpleNamespace(uuid=UUID, name="NVIDIA H100 80GB HBM3")
    cuda = SimpleNamespace(
        is_initialized=lambda: True, current_device=lambda: 0, get_device_properties=lambda _: properties, **more
    )
    return SimpleNamespace(cuda=cuda)


def readings(clock_mhz: int, bus: int) -> NvmlReadings:
    """The hook, of a device at a clock and on a bus."""
    return NvmlReadings(torch_on_a_device(), lambda: driver(clock_mhz, address=(0, bus, 0)))
