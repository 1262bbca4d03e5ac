"""What may be lost, repaired or guessed in one file. In: nothing. Out: an `IssueLog` with its codes."""

from traceforge.reading.issue_log import IssueLog

_MEANINGS = {
    "no_nodes": ("warning", "the file holds no node"),
    "unknown_schema": ("warning", "a version of the schema that was not seen before; read like the nearest known one"),
    "no_schema": ("warning", "the file does not state the version of its schema"),
    "truncated": ("warning", "the file ends in the middle of a node; all nodes before it are kept"),
    "unfinished": ("warning", "the list of nodes is not closed; the recorded process died, or never stopped recording"),
    "damaged_compression": ("warning", "the compressed data is damaged; what could be decompressed is read"),
    "undecodable_node": ("error", "text between two good nodes is no JSON, even after repair"),
    "repaired_node": ("info", "the text of a node was no sound JSON and was repaired"),
    "skipped_bytes": ("info", "bytes that belong to no readable node"),
    "second_trace": ("warning", "the file holds several traces; each is kept as a part of its own"),
    "node_without_id": ("warning", "a node has no readable id, so nothing can refer to it"),
    "repeated_node_id": ("warning", "several nodes of one trace have the same id"),
    "wrong_type": ("warning", "a value has an unexpected type; read as far as possible, else as NULL"),
    "out_of_range": ("warning", "a number does not fit its column and became NULL"),
    "unreadable_arguments": ("warning", "inputs or outputs of a node cannot be read"),
    "unreadable_groups": ("warning", "a list of process groups cannot be read"),
    "unreadable_metadata": ("warning", "what stands beside the nodes is damaged and was read in part"),
    "size_contradicted": ("warning", "a call states another number of elements than its tensors have; these count"),
    "missing_communication_info": ("info", "PyTorch had no description of a communication at hand"),
}


def new_log() -> IssueLog:
    """A log for one file."""
    return IssueLog(_MEANINGS, "pytorch_et_")
