"""Lines that a collector of logs wrapped in JSON. In: whole lines. Out: the text of each, again a line.

Idea: container runtimes and collectors write an object a line, `{"log": "…\\n", "time": "…"}`; its text is what the
program wrote, and its time is put before it, where other logs have theirs. Each line stays one, so that line numbers
are those of the file; what is no such object stays as it is.
Not handled: texts that a collector cut in several objects; arrays of objects.
"""

import msgspec

# Docker and Fluentd, most loggers, zap, Google Cloud, Loki, OpenTelemetry.
_TEXTS = ("log", "message", "msg", "textPayload", "line", "body")
_TIMES = ("time", "timestamp", "@timestamp", "ts")
_DECODER = msgspec.json.Decoder(dict[str, object])


def is_wrapped(head: bytes) -> bool:
    """Whether the first line of a file is an object that holds a line of text."""
    first = head.lstrip().split(b"\n", 1)[0]
    return first.startswith(b"{") and _text_of(first) is not None


def unwrapped(lines: bytes) -> bytes:
    """As many lines, each with its own text only."""
    return b"".join(map(_line, lines.splitlines(keepends=True)))


def _line(line: bytes) -> bytes:
    text = _text_of(line)
    return line if text is None else text.encode("utf-8", "replace") + b"\n"


def _text_of(line: bytes) -> str | None:
    """What an object says, after its time; None where it is none that says something."""
    try:
        found = _DECODER.decode(line)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return None
    text = _first_of(found, _TEXTS)
    if text is None:
        return None
    time = _first_of(found, _TIMES)
    return " ".join(part for part in (time, *text.splitlines()) if part)


def _first_of(found: dict[str, object], names: tuple[str, ...]) -> str | None:
    return next((value for name in names if isinstance(value := found.get(name), str)), None)
