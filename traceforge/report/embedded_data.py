"""Data inside the page. In: plain Python values. Out: JSON text that no HTML parser can take for markup.

Names from traces are untrusted: `</script>` inside a string would end the element it sits in. `<`, `>` and `&` are
therefore written as escapes that JSON.parse undoes, and everything beyond ASCII as well. Tables travel by column, and
columns that repeat their values travel as a dictionary and codes. What is large travels compressed, as letters and
digits only. Not handled: NaN and infinity, which JSON lacks.
"""

import base64
import json
import zlib
from collections.abc import Mapping, Sequence

from markupsafe import Markup

Dataset = Mapping[str, Sequence[object]]


_BEST = zlib.Z_BEST_COMPRESSION
_ESCAPES = {"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"}


def embedded_json(value: object) -> Markup:
    """A value as JSON text that is safe between `<script type="application/json">` and `</script>`.

    Raises:
        ValueError: the value holds NaN or infinity.
    """
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    for sign, escape in _ESCAPES.items():
        text = text.replace(sign, escape)
    return Markup(text)  # noqa: S704  # the escapes above leave no sign that means anything to HTML


def compressed_json(value: object) -> Markup:
    """A value as compressed JSON text, which the page's script inflates; safe in the same place."""
    text = json.dumps(value, ensure_ascii=True, allow_nan=False, separators=(",", ":"))
    packer = zlib.compressobj(_BEST, wbits=-zlib.MAX_WBITS)
    data = packer.compress(text.encode("ascii")) + packer.flush()
    return embedded_json({"deflate": base64.b64encode(data).decode("ascii")})


def packed(dataset: Dataset) -> dict[str, object]:
    """A table in the form the page's script unpacks."""
    return {name: _packed_column(values) for name, values in dataset.items()}


def _packed_column(values: Sequence[object]) -> object:
    distinct = list(dict.fromkeys(values))
    texts = all(isinstance(value, str) for value in distinct)
    if not texts or 2 * len(distinct) > len(values):
        return list(values)
    codes = {value: code for code, value in enumerate(distinct)}
    return {"values": distinct, "codes": [codes[value] for value in values]}


def row_count(dataset: Dataset) -> int:
    """Number of rows of a table."""
    return len(next(iter(dataset.values()), ()))
