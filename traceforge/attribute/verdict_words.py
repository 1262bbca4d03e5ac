"""Headlines and next steps of a verdict by its state. In: nothing. Out: patterns.

Names in braces are columns of the state; `verdict` fills them. Not handled: what depends on more than the state.
"""

from types import MappingProxyType

from traceforge.attribute.log_text import LOGS_ALONE

# What flight recorder dumps say, in the words of fabric.hang.
OF_HANGS = ("hang", "hang_unknown", "no_hang")
UNKNOWN = "who waits for whom cannot be known from this."

HEADLINES = MappingProxyType(
    {
        **dict.fromkeys(OF_HANGS, "{hang_summary}"),
        "no_timeline": "No file of this run holds a timeline.",
        "graphs_alone": f"Execution traces alone tell what ranks issue and how large it is, not when: {UNKNOWN}",
        "logs_alone": f"{LOGS_ALONE}: what it costs cannot be known from this.",
        "problems": "The logs show {shown_problems}: {first_problem}",
        "rank_unknown": f"No trace of this run says which rank it belongs to: {UNKNOWN}",
        "one_rank": f"Only one rank was recorded: {UNKNOWN}",
        "no_communication": f"No communication between ranks was recorded: {UNKNOWN}",
        "unmatched": f"The collectives of different ranks cannot be matched with certainty: {UNKNOWN}",
        "mostly_unmatched": f"Most calls of communication cannot be matched between ranks: {UNKNOWN}",
        "irregular": "No iteration was recorded in the same form by all ranks: delays cannot be told apart from the "
        "program.",
        "untimed": "No iteration can be judged: some of what devices did has no time, and delays cannot be known.",
        "unmarked": "No step is marked: what repeats is not known, and delays cannot be told apart from the program.",
        "ranks_missing": "Only {ranks} of {world_size} ranks were recorded, and no iteration is whole without what "
        f"they exchange with the others: {UNKNOWN}",
        "finding": "{summary}",
        "uncertain": "Nothing stands out with certainty; the strongest hint may be chance: {inner_summary}",
        "cut_short": "Nothing is certain, as files are cut short; from what is left: {inner_summary}",
        "partly_seen": "Nothing significant on the {ranks} of {world_size} ranks recorded; whether the others are late "
        "cannot be known from this.",
        "nothing_significant": "Nothing significant{seen}.",
        "ownerless": "No {sure} culprit: {delay_share} of an iteration is delay ({spread}).",
        "spread": "No {sure} culprit: {delay_share} of an iteration is delay, spread over {over} ({spread}).",
    }
)

ALL_RANKS = "Record the same steps on all ranks, one trace file a rank, and give the folder that holds them."
OTHER_RANKS = "To see who waits for whom, record the same steps on all ranks."
COMMUNICATION = (
    "Record all ranks in the same steps, the host's calls and the device's work (torch.profiler of PyTorch 2.4 or "
    "later, activities CPU and CUDA); `traceforge doctor` names the setting for these files."
)

NEXT_STEPS = MappingProxyType(
    {
        **dict.fromkeys(OF_HANGS, "{hang_next_step}"),
        "finding": "{next_step}",
        "cut_short": "Give the whole files (a job that is killed while it writes leaves part of them).",
        "logs_alone": "Record a timeline with torch.profiler on all ranks beside these logs; both in one folder are "
        "joined.",
        "graphs_alone": "Record a timeline with torch.profiler on all ranks in the same steps (profile(..., "
        "execution_trace_observer=...) writes both); both in one folder are joined.",
        "rank_unknown": "Record with torch.distributed initialised, or name the files or their folders by rank "
        "(rank0.json, rank1.json).",
        "no_timeline": ALL_RANKS,
        "one_rank": ALL_RANKS,
        "partly_seen": ALL_RANKS,
        "ranks_missing": ALL_RANKS,
        "no_communication": COMMUNICATION,
        "unmatched": COMMUNICATION,
        "mostly_unmatched": COMMUNICATION,
    }
)

IRREGULAR = MappingProxyType(
    {
        "steps": "Mark the iterations: call profiler.step() in the training loop; under Nsight Systems, put each into "
        'an NVTX range (torch.cuda.nvtx.range(f"step {n}")).',
        "untimed": "Record again, with a newer driver or profiler: this one wrote impossible times for some of what "
        "devices did (meta.issue counts them).",
        "regular": "Record the same steps on all ranks, with shapes (record_shapes=True), so that each collective has "
        "all its members and each message both its ends.",
    }
)
MORE_STEPS = (
    "Record ten or more steps (torch.profiler.schedule with active=10), so that rare delays can be told from noise."
)
