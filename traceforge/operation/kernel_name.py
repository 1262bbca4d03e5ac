"""Kernels by names that people read. In: the full name, demangled or not. Out: a short name, and a kind of kernel.

Idea: a C++ name is what stands before its arguments, without namespaces; of its template arguments only the one that
says what it computes is kept (`vectorized_elementwise_kernel<CUDAFunctor_add>`), as two kernels that differ in it do
different work. The full name is kept beside it. Not handled: names that a compiler of its own made (Triton's, for
example) are left as they are, cut in the middle where they are long.
"""

import re
from functools import lru_cache

from traceforge.vocabulary import vocabulary

LONGEST = 80
_MOST_REMEMBERED = 4_096

_MANGLED = re.compile(r"^_ZN?K?")
_LENGTH = re.compile(r"(\d+)")
# The first template argument that is a nested name, behind numbers.
_FIRST_ARGUMENT = re.compile(r"I(?:L[a-z]\d+E)*N(?:S\d*[A-Z]?\d*_)?K?")
# `std::enable_if<!(false), void>::type name<...>`: what decides whether there is a kernel, and its result.
_CONDITION = re.compile(r"^(?:typename )?std::enable_if<[^<>]*>::type\s+")
_LAMBDA = re.compile(r"\{lambda[^{}]*\}|\(anonymous namespace\)|<unnamed>|\(lambda[^()]*(?:\([^()]*\))?[^()]*\)")
# `all-reduce-start.3`: an operation of XLA, whose number tells one place of the program from another.
_XLA_NAME = re.compile(r"^[a-z][a-z0-9_]*(?:-[a-z0-9_]+)+(?:\.\d+)?$")
_IDENTIFIER = re.compile(r"[A-Za-z_]\w*")
_WRAPPERS = frozenset({"Kernel", "Kernel2", "device_kernel", "kernel", "kentry", "Enable3xKernel"})
_PLAIN_TYPES = frozenset({"int", "float", "double", "bool", "char", "long", "unsigned", "short", "void"})
_SAYS_WHAT = re.compile(r"\b(\w*(?:[Ff]unctor|_kernel_cuda|_kernel_impl|_cuda_impl|_cuda_out|Ops?)(?:_\w+)?)\b")
_SAYS_NOTHING = re.compile(r"^(?:gpu_kernel_impl\w*|func_wrapper_t|.*Iterator.*|no_?op)$", re.IGNORECASE)

_LIBRARIES = "|".join(vocabulary().collective_libraries)
_KINDS = (
    ("communication", rf"{_LIBRARIES}|deep_?ep|nvshmem|cross_device_reduce|multimem"),
    ("copy", r"^memcpy|^(?:async-)?copy-|copydevice|catarray"),
    ("memset", r"^memset|fillfunctor|fillbuffer"),
    ("attention", r"flash|fmha|attn|attention"),
    ("convolution", r"conv(?!ert)|winograd|implicit_gemm|dgrad|wgrad|scudnn"),
    ("matrix_product", r"(?<!fb)gemm|gemv|mm$|matmul|cutlass|cijk|splitk|nvjet|tensorop|wgmma"),
    ("normalisation", r"norm|bn_fw|bn_bw"),
    ("optimiser", r"adam|sgd|lamb_|multi_tensor|optimi[sz]er"),
    ("embedding", r"embedding|index|gather|scatter"),
    ("softmax", r"softmax|nll_?loss|cross_?entropy"),
    ("reduction", r"reduce|sum|scan|sort|topk|argmax"),
    ("generated", r"^triton"),
    ("elementwise", r"elementwise|pointwise|functor|dropout|relu|gelu|silu|copy|fill|cat"),
)
_BY_OPERATION = frozenset({"attention", "convolution"})
KINDS = (*(name for name, _ in _KINDS), "other")
"""What a kernel may be, by its name."""

_PATTERNS = tuple((name, re.compile(pattern, re.IGNORECASE)) for name, pattern in _KINDS)


@lru_cache(_MOST_REMEMBERED)
def kind_of(kernel: str, operation: str | None) -> str:
    """What a kernel computes.

    By the operation if that is a convolution or attention, else by its short name, or by the operation where that does
    not tell.
    """
    if operation is not None:
        for kind, pattern in _PATTERNS:
            if kind in _BY_OPERATION and pattern.search(operation):
                return kind
    return _first_kind(kernel) or (_first_kind(operation) if operation else None) or "other"


def _first_kind(name: str) -> str | None:
    return next((kind for kind, pattern in _PATTERNS if pattern.search(name)), None)


@lru_cache(_MOST_REMEMBERED)
def short_name(name: str) -> str:
    """A name of at most `LONGEST` letters that a person can tell apart from others."""
    if _MANGLED.match(name):
        return _cut(_demangled(name))
    if name.startswith(("Memcpy", "Memset")) or _XLA_NAME.match(name):
        return _cut(name)
    plain = _LAMBDA.sub("", _CONDITION.sub("", name))
    head, inside = _parts(plain)
    words = _IDENTIFIER.findall(head)
    if not words:
        return _cut(name)
    last = words[-1]
    inner = _IDENTIFIER.search(inside) if last in _WRAPPERS else None
    if inner and inner[0] in _PLAIN_TYPES and len(words) > 1:
        return _cut(f"{words[-2]}::{last}")
    if inner:
        return _cut(inside[inner.start() :].split("<")[0].split(",")[0].split("::")[-1])
    said = next((word for word in _SAYS_WHAT.findall(inside) if not _SAYS_NOTHING.match(word)), None)
    return _cut(f"{last}<{said}>" if said and said != last else last)


def _parts(name: str) -> tuple[str, str]:
    """What stands outside of angle brackets before the arguments, and what stands inside of the first ones."""
    outside: list[str] = []
    inside: list[str] = []
    depth = 0
    for letter in name:
        if letter == "(" and depth == 0 and outside:
            break
        if letter == ">" and depth:
            depth -= 1
        (inside if depth else outside).append(letter)
        if letter == "<":
            depth += 1
    return "".join(outside).rstrip("<> "), "".join(inside)


def _demangled(name: str) -> str:
    """The last of the nested names that a mangled one begins with; of a wrapper, that of what it wraps."""
    match = _MANGLED.match(name)
    found, place = _nested(name, match.end() if match else 0)
    while found and _wraps(found) and (inside := _FIRST_ARGUMENT.match(name, place)):
        inner, place = _nested(name, inside.end())
        if not inner:
            break
        found = inner
    return found or name


def _nested(name: str, place: int) -> tuple[str, int]:
    """The last of nested names, each preceded by its length, and where they end; empty where there is none."""
    found = ""
    while number := _LENGTH.match(name, place):
        end = number.end() + int(number[1][:9])
        if end > len(name):
            break
        found, place = name[number.end() : end], end
    return found, place


def _wraps(name: str) -> bool:
    return name in _WRAPPERS or name.startswith("enable_")


def _cut(text: str) -> str:
    if len(text) <= LONGEST:
        return text
    half = (LONGEST - 1) // 2
    return f"{text[:half]}…{text[-half:]}"
