from collections.abc import Sequence

_Token = bytes | None

class Scanner:
    """Reads units of plain text into columns; see module.c."""

    @property
    def row_count(self) -> int:
        """Rows gathered since the last `take`."""

    def scan(self, text: bytes, first_event_id: int, /) -> list[tuple[_Token, _Token, _Token, _Token, _Token]] | None:
        """The new kinds of a unit (phase, category, name, process, thread); None where it is declined."""

    def settle(self, ids: Sequence[int], wants: bytes, wants_all: bool, /) -> list[tuple[int, int, bytes]]:
        """Take the last unit's rows; returns event, kind and text of the arguments wanted."""

    def take(self) -> tuple[object, object]:
        """All rows gathered, as `__arrow_c_array__` returns them."""

    def forget_kinds(self) -> None:
        """All kinds are new again."""
