"""Texts at known places of a block are told from others, however long they are."""

import numpy as np
import pytest

from traceforge.sources.nccl_log.byte_words import BACK_PADDING, FRONT_PADDING, ByteWords


@pytest.mark.parametrize("literal", [b"Z ", b"Z stdout", b"Z stdout F "])
def test_a_literal_of_any_length_is_found_where_all_of_it_stands(literal: bytes) -> None:
    # given the literal, the same with another last byte, and another first one
    texts = [literal, literal[:-1] + b"?", b"?" + literal[1:]]
    words = ByteWords(FRONT_PADDING + b"".join(texts) + BACK_PADDING)

    found = words.begin_with(np.arange(3) * len(literal), literal)

    assert found.tolist() == [True, False, False]
