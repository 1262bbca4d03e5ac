"""How rocprofv3 lays out its JSON. In: nothing. Out: the types that msgspec decodes it into.

Idea: only what traceforge reads has a field, all fields have defaults, so that other versions are read as far as they
agree; lists of records stay raw text until one is asked for. Not handled: fields of counters and of PC sampling.
"""

import msgspec


class Handle(msgspec.Struct, gc=False):
    """A number that stands for an agent, a queue or a stream."""

    handle: int = 0


class Correlation(msgspec.Struct, gc=False):
    """Joins a dispatch or a copy to the call that asked for it."""

    internal: int = 0


class DispatchInfo(msgspec.Struct, gc=False):
    """Which kernel ran where."""

    agent_id: Handle = msgspec.field(default_factory=Handle)
    queue_id: Handle = msgspec.field(default_factory=Handle)
    kernel_id: int = -1


class BufferRecord(msgspec.Struct, gc=False):
    """A dispatch, a copy or a call; fields of other kinds keep their defaults."""

    kind: int = 0
    operation: int = -1
    thread_id: int = 0
    correlation_id: Correlation = msgspec.field(default_factory=Correlation)
    start_timestamp: int = -1
    end_timestamp: int = -1
    dispatch_info: DispatchInfo | None = None
    stream_id: Handle | None = None
    dst_agent_id: Handle | None = None
    src_agent_id: Handle | None = None
    bytes: int | None = None


class Agent(msgspec.Struct):
    """A processor of the node, `type` 2 for a GPU."""

    id: Handle = msgspec.field(default_factory=Handle)
    type: int = 0
    product_name: str = ""
    cu_count: int = 0
    mem_banks: list[dict[str, object]] = []


class Symbol(msgspec.Struct):
    """A kernel's name."""

    kernel_id: int = -1
    formatted_kernel_name: str = ""
    kernel_name: str = ""


class Operations(msgspec.Struct):
    """Names of the operations of one kind of record."""

    kind: str = ""
    operations: list[str] = []


class Message(msgspec.Struct):
    """The text of a marker."""

    key: int = -1
    value: str = ""


class Strings(msgspec.Struct):
    """Tables of names."""

    buffer_records: list[Operations] = []
    marker_api: list[Message] = []


class HostNode(msgspec.Struct):
    """The host."""

    hostname: str | None = None


class Metadata(msgspec.Struct):
    """Whose file it is."""

    node: HostNode = msgspec.field(default_factory=HostNode)
    pid: int = 0


class ProfiledProcess(msgspec.Struct):
    """All that was recorded of one process."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)
    agents: list[Agent] = []
    strings: Strings = msgspec.field(default_factory=Strings)
    kernel_symbols: list[Symbol] = []
    buffer_records: dict[str, msgspec.Raw] = {}


class RocprofFile(msgspec.Struct):
    """A whole file."""

    processes: list[ProfiledProcess] = msgspec.field(default_factory=list, name="rocprofiler-sdk-tool")


class ProcessHead(msgspec.Struct):
    """What tells a process, of a file that is not read yet."""

    metadata: Metadata = msgspec.field(default_factory=Metadata)


class FileHead(msgspec.Struct):
    """The processes of a file, without their records."""

    processes: list[ProcessHead] = msgspec.field(default_factory=list, name="rocprofiler-sdk-tool")
