"""Numbers in the place of what recurs. In: tuples such as ("phase", "forward"). Out: small numbers, and what is new.

What is new is made fit for a file once: text that UTF-8 can say, numbers of any library as plain ones.
Not handled: programs that give each call a name of its own; after `MOST` names all others share one.
"""

import operator
from threading import Lock

MOST = 100_000
_LONGEST_TEXT = 1_000
Key = tuple[object, ...]
OTHER: Key = ("phase", "names beyond the limit")


class Names:
    """Numbers keys as they come."""

    def __init__(self) -> None:
        self._numbers: dict[Key, int] = {}
        self._new: list[tuple[int, Key]] = []
        self._lock = Lock()

    def number(self, key: Key) -> int:
        """The number of a key; equal keys have one number."""
        found = self._numbers.get(key)
        return self._add(key) if found is None else found

    def _add(self, key: Key) -> int:
        with self._lock:
            key = key if len(self._numbers) < MOST or key[0] != "phase" else OTHER
            number = self._numbers.setdefault(key, len(self._numbers))
            if number == len(self._numbers) - 1:
                self._new.append((number, tuple(_plain(one) for one in key)))
        return number

    def take_new(self) -> list[tuple[int, Key]]:
        """What was numbered since the last call."""
        with self._lock:
            new, self._new = self._new, []
        return new


def _plain(value: object) -> object:
    """A value that JSON can hold: of what it cannot, the text."""
    if value is None:
        return None
    if isinstance(value, tuple):
        return tuple(_plain(one) for one in value)
    try:
        return operator.index(value)  # type: ignore[arg-type]
    except TypeError:
        return str(value)[:_LONGEST_TEXT].encode(errors="replace").decode()
