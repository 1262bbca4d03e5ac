from collections.abc import Sequence

_Token = bytes | None

class Scanner:
    """Reads units of plain text into columns; see module.c."""

    @property
    def row_count(self) -> int:
        """Rows gathered since the last `take`."""

    def scan(self, text: bytes, first_event_id: int, /) -> list[tuple[_Token, _Token, _Token, _Token, _Token]] | None:
        """The new kinds of a unit (phase, category, name, process, thread); None where it is declined."""

    def settle(
        self, ids: Sequence[int], asks: bytes, wants_all: bool, /
    ) -> tuple[list[tuple[int, int, bytes]], list[tuple[bytes, int]], bytes]:
        """Take the last unit's rows.

        Args:
            ids: of the new kinds.
            asks: for each of these 1 to get the arguments of its events, plus 2 to keep those of communication.
            wants_all: keep the arguments of all events.

        Returns:
            Event, kind and text of the arguments asked for; text and sequence number (-1 where there is none) of calls
            that are unlike those before; and of all calls event, place among the unlike ones, and sequence number, as
            int64.
        """

    def take(self) -> tuple[object, object]:
        """All rows gathered, as `__arrow_c_array__` returns them."""

    def take_texts(self) -> tuple[object, object] | None:
        """The arguments kept since the last time (event_id, args), likewise; None where there are none."""

    def forget_calls(self) -> None:
        """All calls are new again."""

    def forget_kinds(self) -> None:
        """All kinds are new again."""
