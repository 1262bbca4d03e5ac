"""Which axis of a mesh a group of ranks is named after. In: its description. Out: pp, dp, …, or nothing.

Frameworks describe their groups in words of their own: PIPELINE_MODEL_PARALLEL_GROUP (Megatron-LM), mesh_tp (device
meshes of PyTorch 2.2 and later), fsdp. Not handled: descriptions in other words.
"""

import re

_PATTERNS = (
    ("pp", r"pipeline|(^|[^a-z])pp([^a-z]|$)"),
    ("fsdp", r"fsdp|shard"),
    ("ep", r"expert(?!.*data)|(^|[^a-z])ep([^a-z]|$)"),
    ("dp", r"data|replica|(^|[^a-z])d?dp([^a-z]|$)"),
    ("cp", r"context|(^|[^a-z])cp([^a-z]|$)"),
    ("tp", r"tensor|(^|[^a-z])tp([^a-z]|$)"),
)


def axis_name(description: str) -> str:
    """pp, fsdp, ep, dp, cp or tp, the first that fits; empty where none does."""
    return next((name for name, pattern in _PATTERNS if re.search(pattern, description, re.IGNORECASE)), "")
