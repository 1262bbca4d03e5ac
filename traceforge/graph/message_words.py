"""What does not match between a sender and a receiver, in words. In: a row of graph.message_pair. Out: text.

Idea: the issue, the verdict and the report say the same of a pair in the same words.
"""

from collections.abc import Mapping
from typing import Any


def message_mismatch(row: Mapping[str, Any]) -> str:
    """What the two ranks disagree about, from the first message on that does not fit.

    Args:
        row: of graph.message_pair, with another status than agrees.
    """
    sender, receiver = f"rank {row['source_rank']}", f"rank {row['destination_rank']}"
    message, send, receive = row["first_place"], f"node {row['send_node_id']}", f"node {row['receive_node_id']}"
    return {
        "size": f"message {message} is sent with {row['sent_bytes']} bytes ({send}) and received with "
        f"{row['received_bytes']} ({receive})",
        "order": f"messages are received in another order than they are sent, from message {message} on ({send}, "
        f"{receive})",
        "unreceived": f"{sender} sends message {message} ({send}), which {receiver} does not receive",
        "unsent": f"{receiver} receives message {message} ({receive}), which {sender} does not send",
        "shorter": "the recording of one side may begin later or end earlier",
    }[row["status"]]
