"""Texts that Python's repr wrote, as values. In: such as `[[1, 2, 'cuda:0'], '<None>']`. Out: lists and scalars.

Idea: the converter stores inputs and outputs as the repr of JSON values. Without escapes and double quotes, swapping
the quotes and three words makes JSON of it, which decodes far faster than by Python's own parser.
Not handled: anything but lists, texts, numbers, booleans and None.
"""

import ast
import re

import msgspec

_QUOTED_OR_WORD = re.compile(r"'[^']*'|\b(?:True|False|None)\b")
_WORDS = {"True": "true", "False": "false", "None": "null"}
_UNREADABLE = (ValueError, SyntaxError, MemoryError, RecursionError)
_decode = msgspec.json.Decoder().decode


class UnreadableError(ValueError):
    """The text is no repr of a value."""


def value_of(text: str) -> object:
    """The value that a text is the repr of.

    Raises:
        UnreadableError: it is none.
    """
    if '"' not in text and "\\" not in text:
        words = _QUOTED_OR_WORD.sub(lambda match: _WORDS.get(match[0], match[0]), text)
        try:
            return _decode(words.replace("'", '"').encode())
        except (msgspec.MsgspecError, RecursionError, UnicodeError):
            pass
    try:
        return ast.literal_eval(text)
    except _UNREADABLE as error:
        raise UnreadableError(str(error)) from error


def json_of_text(text: str) -> object:
    """The value of JSON text.

    Raises:
        UnreadableError: it is none.
    """
    try:
        return _decode(text.encode())
    except (msgspec.MsgspecError, RecursionError, UnicodeError) as error:
        raise UnreadableError(str(error)) from error


def listed_texts(text: str) -> list[str]:
    """The texts in the list that a text is the repr of.

    Raises:
        UnreadableError: it is no list.
    """
    found = value_of(text)
    if not isinstance(found, list):
        raise UnreadableError("no list")
    return [item for item in found if isinstance(item, str)]
