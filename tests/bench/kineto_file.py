"""A Kineto file of any size, as PyTorch 2.3 and later write it. In: a size. Out: a .json.gz file.

Idea: all that one kernel launch leaves in a trace is a text with places for its numbers; the file is that text over and
over, with times, identifiers and names that move on as in a real run: two nested host operations, the launch, two flow
arrows, the kernel and a memory instant. With shapes the inner operation is one of PyTorch with its inputs, and steps
are marked. Not handled: stacks and other rare arguments; nothing in it is random.
"""

import gzip
import json
from collections.abc import Iterator
from pathlib import Path

EVENTS_A_LAUNCH = 7
_HEAD = """{
  "schemaVersion": 1,
  "deviceProperties": [
    {
      "id": 0, "name": "NVIDIA A100-SXM4-40GB", "totalGlobalMem": 42298834944,
      "computeMajor": 8, "computeMinor": 0, "numSms": 108
    }
  ],
  "distributedInfo": {"backend": "nccl", "rank": 0, "world_size": 8, "nccl_version": "2.20.5"},
  "displayTimeUnit": "ms",
  "baseTimeNanoseconds": 1711929600000000000,
  "traceEvents": [
"""
_LAUNCH = """  {{
    "ph": "X", "cat": "cpu_op", "name": "{operation}", "pid": 1102, "tid": {thread},
    "ts": {at}.{ns:03}, "dur": 18.{number3:03},
    "args": {{
      "External id": {event},"Record function id": 0, "Sequence number": {number}, "Fwd thread id": 0, "Ev Idx": {event}
    }}
  }},
  {{
    "ph": "X", "cat": "cpu_op", "name": "layer_{layer}::forward", "pid": 1102, "tid": {thread},
    "ts": {at1}.{ns:03}, "dur": 15.009,
    "args": {{
      "External id": {event1},"Record function id": 0, "Ev Idx": {event1}
    }}
  }},
  {{
    "ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "pid": 1102, "tid": {thread},
    "ts": {at6}.{ns:03}, "dur": 4.1{number2:02},
    "args": {{
      "External id": {event1},
      "cbid": 211, "correlation": {correlation}
    }}
  }},
  {{
    "ph": "s", "id": {correlation}, "pid": 1102, "tid": {thread}, "ts": {at6}.{ns:03},
    "cat": "ac2g", "name": "ac2g"
  }},
  {{
    "ph": "X", "cat": "kernel", "name": "{kernel}", "pid": 0, "tid": {stream},
    "ts": {kernel_at}.{kernel_ns:03}, "dur": {kernel_us}.{number3:03},
    "args": {{
      "External id": {event1},
      "queued": 0, "device": 0, "context": 1,
      "stream": {stream}, "correlation": {correlation},
      "registers per thread": 32,
      "shared memory": 0,
      "blocks per SM": 18.962963,
      "warps per SM": 75.851852,
      "grid": [2048, 1, 1],
      "block": [128, 1, 1],
      "est. achieved occupancy %": 100
    }}
  }},
  {{
    "ph": "f", "id": {correlation}, "pid": 0, "tid": {stream}, "ts": {kernel_at}.{kernel_ns:03},
    "cat": "ac2g", "name": "ac2g", "bp": "e"
  }},
  {{
    "name": "[memory]", "ph": "i", "s": "t", "pid": 1102, "tid": {thread},
    "ts": {at6}.{ns:03},
    "args": {{
      "Total Reserved": 1887436800, "Total Allocated": {allocated}, "Bytes": {size}, "Addr": {address}, "Device Id": 0,
      "Device Type": 1, "Ev Idx": {event}
    }}
  }},
"""
_STEP = """  {{
    "ph": "X", "cat": "user_annotation", "name": "ProfilerStep#{step}", "pid": 1102, "tid": 1102,
    "ts": {at}.{ns:03}, "dur": {step_us},
    "args": {{
      "External id": {event},"Record function id": 0, "Ev Idx": {event}
    }}
  }},
"""
# The inner operation is one of PyTorch, with its inputs.
_SHAPED_LAUNCH = (
    _LAUNCH.replace('"layer_{layer}::forward"', '"{inner}"')
    .replace('"{operation}"', '"layer_{layer}::forward"')
    .replace(
        '"External id": {event1},"Record function id": 0, "Ev Idx": {event1}',
        '"External id": {event1},"Record function id": 0, "Concrete Inputs": {concrete}, "Input type": {types},\n'
        '      "Input Strides": {strides}, "Input Dims": {dims}, "Ev Idx": {event1}',
    )
)
_FOOT = """  {
    "name": "process_name", "ph": "M", "ts": 0.000, "pid": 1102, "tid": 0,
    "args": {
      "name": "python"
    }
  }
  ],
  "traceName": "./rank0.pt.trace.json"
}
"""
_OPERATIONS = ("aten::linear", "aten::addmm", "aten::empty", "aten::layer_norm", "aten::gelu", "aten::dropout")
_KERNELS = (
    "ampere_fp16_s16816gemm_fp16_128x128_ldg8_f2f_stages_32x5_tn",
    "void at::native::vectorized_layer_norm_kernel<c10::Half, float>(int, float, c10::Half const*, float*)",
    (
        "void at::native::vectorized_elementwise_kernel<4, at::native::GeluCUDAKernelImpl(at::TensorIteratorBase&)"
        "::{lambda()#1}, at::detail::Array<char*, 2> >(int, at::detail::Array<char*, 2>)"
    ),
    "void at::native::fused_dropout_kernel_vec<c10::Half, float, unsigned int, 1, 4, bool>(at::cuda::TensorInfo)",
    "void cutlass::Kernel<cutlass_80_tensorop_f16_s16816gemm_relu_f16_256x128_32x3_nn_align8>(Params)",
)
_HALF, _SCALAR = "c10::Half", "Scalar"
# Dims, strides, types and values of the inputs of each of `_OPERATIONS`.
_INPUTS: tuple[tuple[list[list[int]], list[list[int]], list[str], list[str]], ...] = (
    ([[8192, 1024], [1024, 1024], [1024]], [[1024, 1], [1024, 1], [1]], [_HALF] * 3, [""] * 3),
    ([[1024], [8192, 1024], [1024, 1024], [], []], [[1], [1024, 1], [1, 1024], [], []], [_HALF] * 3 + [_SCALAR] * 2,
     ["", "", "", "1", "1"]),
    ([[], [], [], [], [], []], [[]] * 6, ["ScalarList", *[_SCALAR] * 5], ["[8192, 1024]", "5", "0", "", "", ""]),
    ([[8192, 1024], [], [1024], [1024], [], []], [[1024, 1], [], [1], [1], [], []], [_HALF, "", _HALF, _HALF, "", ""],
     ["", "[1024]", "", "", "1e-05", "True"]),
    ([[8192, 4096], []], [[4096, 1], []], [_HALF, ""], ["", "none"]),
    ([[8192, 1024], [], []], [[1024, 1], [], []], [_HALF, _SCALAR, _SCALAR], ["", "0.1", "True"]),
)  # fmt: skip
_HOST_NS_A_LAUNCH = 21_007
_LAUNCHES_A_STEP = 2_000


def write_kineto_file(path: Path, size_bytes: int, *, has_shapes: bool = False) -> int:
    """Write a gzip file of at least so many bytes of JSON; returns how many events it holds.

    Args:
        has_shapes: whether inputs of operations and steps are recorded, too.
    """
    events = 1
    with gzip.open(path, "wt", compresslevel=6, encoding="utf-8") as file:
        written = file.write(_HEAD)
        for number, text in enumerate(_shaped_launches() if has_shapes else _launches()):
            if has_shapes and number % _LAUNCHES_A_STEP == 0:
                written += file.write(_step(number))
                events += 1
            written += file.write(text)
            events += EVENTS_A_LAUNCH
            if written >= size_bytes:
                break
        file.write(_FOOT)
    return events


def _launches() -> Iterator[str]:
    number = 0
    while True:
        yield _LAUNCH.format_map(_numbers(number))
        number += 1


def _shaped_launches() -> Iterator[str]:
    inputs = [dict(zip(("dims", "strides", "types", "concrete"), map(json.dumps, one), strict=True)) for one in _INPUTS]
    number = 0
    while True:
        numbers = _numbers(number)
        yield _SHAPED_LAUNCH.format_map(numbers | inputs[number % len(inputs)] | {"inner": numbers["operation"]})
        number += 1


def _step(number: int) -> str:
    lasting = {"step": number // _LAUNCHES_A_STEP, "step_us": _LAUNCHES_A_STEP * _HOST_NS_A_LAUNCH // 1_000}
    return _STEP.format_map(_numbers(number) | lasting)


def _numbers(number: int) -> dict[str, int | str]:
    """What stands in the places of one launch's text."""
    at, ns = divmod(4_458_676_000_000_000 + number * _HOST_NS_A_LAUNCH, 1000)
    event = number * 3
    return {
        "operation": _OPERATIONS[number % len(_OPERATIONS)],
        "kernel": _KERNELS[number % len(_KERNELS)],
        "layer": number // 35 % 96,
        "thread": 1102 + number // 500 % 2,
        "stream": 7 if number % 10 else 20,
        "number": number,
        "number3": number * 7 % 1000,
        "number2": number % 100,
        "at": at,
        "at1": at + 1,
        "at6": at + 6,
        "ns": ns,
        "kernel_at": at + 900 + number % 13,
        "kernel_ns": number * 37 % 1000,
        "kernel_us": 12 + number % 90,
        "event": event,
        "event1": event + 1,
        "correlation": 3_000 + number * 7,
        "allocated": 10**9 + number % 977 * 512,
        "size": 512 * (number % 31),
        "address": 139_800_000_000_000 + number,
    }
