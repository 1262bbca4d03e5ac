"""What may be lost, repaired or guessed in one Chakra file. In: nothing. Out: an `IssueLog` with its codes."""

from traceforge.reading.issue_log import IssueLog

_MEANINGS = {
    "no_nodes": ("warning", "the file holds no node"),
    "truncated": ("warning", "the file ends in the middle of a node; all nodes before it are kept"),
    "damaged_compression": ("warning", "the compressed data is damaged; what could be decompressed is read"),
    "undecodable_node": ("error", "bytes between two good nodes are no node"),
    "repaired_node": ("info", "the text of a node was no sound JSON and was repaired"),
    "undecodable_list": ("warning", "a list of dependencies is damaged and was left out"),
    "undecodable_attribute": ("warning", "an attribute is damaged and was left out"),
    "skipped_bytes": ("info", "bytes that belong to no readable node; the nodes lost with them are estimated"),
    "empty_frame": ("info", "frames of length zero between nodes were skipped"),
    "unknown_field": ("info", "fields that no known version of the schema has were ignored"),
    "second_trace": ("warning", "the file holds several traces; each is kept as a part of its own"),
    "invalid_utf8": ("info", "bytes that are no UTF-8 were replaced by U+FFFD"),
    "wrong_type": ("warning", "a value has an unexpected type and became NULL"),
    "out_of_range": ("warning", "a number does not fit its column: it became NULL, or its edge was left out"),
    "unreadable_arguments": ("warning", "inputs or outputs of a node cannot be read as tensors"),
    "unreadable_groups": ("warning", "a list of process groups cannot be read"),
    "unreadable_metadata": ("warning", "what stands beside the nodes is damaged and was read in part"),
    "unknown_collective": ("warning", "a node communicates but does not say what; it is counted and not compared"),
    "host_communication": ("info", "a host operation communicates and does not say what; the device's call counts"),
    "size_contradicted": ("warning", "a call states another size than its input tensors have; the stated one counts"),
    "repeated_node_id": ("warning", "several nodes of one trace have the same id"),
}


def new_log() -> IssueLog:
    """A log for one file."""
    return IssueLog(_MEANINGS, "chakra_")
