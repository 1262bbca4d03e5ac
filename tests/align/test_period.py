"""After how many calls or kernels a sequence repeats itself, and that layers of a step are not taken for steps."""

import numpy as np
import pytest

from traceforge.align.period import kernel_period, period_of


@pytest.mark.parametrize(
    ("tokens", "period"),
    [
        ("ababab", 2),
        ("abcabcabc", 3),
        # Twice is no repetition; neither is one kind of call, however often.
        ("abcabc", None),
        ("aaaaaa", None),
        ("", None),
        # Two kinds, but one repeats with the period of the other.
        ("aabaabaab", 3),
        # The shortest period is taken, and the last turn may be cut.
        ("abababababab", 2),
        ("abcabcabca", 3),
        # 1 call of 20 may differ (19 of 20 pairs agree), but not 2 of 20.
        ("ab" * 10 + "ac", 2),
        ("ab" * 9 + "acbc", None),
        # Layers repeat within a step: what comes once after them ends it.
        ("a" * 40 + "b", None),
        (("a" * 40 + "b") * 3, 41),
        (("ab" * 30 + "c") * 4, 61),
        # What comes oddly and seldom marks nothing; nor does a first turn that differs.
        ("ab" * 30 + "c" + "ab" * 33 + "c" + "ab" * 40, 2),
        ("c" * 6 + "a" * 114, None),
        # Three periods must fit.
        ("abcdabcdabc", None),
        ("abcdabcdabcd", 4),
    ],
)
def test_a_sequence_repeats_if_nearly_all_of_it_equals_itself_one_period_later(tokens: str, period: int | None) -> None:
    assert period_of(tokens) == period


def _names(sequence: str) -> "np.ndarray[tuple[int], np.dtype[np.int32]]":
    kinds = sorted(set(sequence))
    return np.array([kinds.index(name) for name in sequence], dtype=np.int32)


@pytest.mark.parametrize(
    ("kernels", "period"),
    [
        # three steps of a forward pass, a backward pass of two layers, and an optimizer
        ("ffbgbgo" * 3, 7),
        # layers within the step have periods of their own, which leave out the head and the optimizer
        (("fg" * 20 + "h" + "bc" * 20 + "o") * 4, 82),
        # one pass of an inference: what lies before and behind its layers is of no turn
        ("e" + "fgn" * 30 + "hs", None),
        # each kind several times a turn, at uneven distances
        ("aababb" * 4, 6),
        # twice is no repetition, and one kind of kernel has no turn
        ("ffbgbgo" * 2, None),
        ("a" * 30, None),
        ("", None),
        # one pass through layers of many kinds of kernels, and a kernel that ran once: which it is cannot be told
        ("x" + "abcdefghijkl" * 20, None),
    ],
)
def test_kernels_repeat_once_a_step_and_layers_alone_are_no_steps(kernels: str, period: int | None) -> None:
    assert kernel_period(_names(kernels)) == period
