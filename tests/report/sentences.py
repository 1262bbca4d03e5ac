"""What a page says in words, and where it contradicts itself. In: HTML. Out: sentences, and those that cannot stand.

Reads the page as a stranger would: no part of the report's own code is used. The SQL and the list of terms say nothing
about the run and are left out.
"""

import re
from html.parser import HTMLParser
from itertools import pairwise

_TOLD = {"p", "h1", "h2", "h3", "h4", "figcaption", "summary", "li", "dd", "title", "td"}
_RUNNING = _TOLD - {"dd", "td"}
_SILENT = {"script", "style", "pre", "code"}
_NOT_OF_THE_RUN = {"appendix"}
_UNITS_NS = {"ns": 1.0, "µs": 1e3, "ms": 1e6, "s": 1e9}
_SIZE = r"(\d[\d ]*(?:\.\d+)?) (ns|µs|ms|s)\b"

# A decimal number is followed by its unit, by the end of a range or by what it counts.
_BARE = re.compile(r"(?<![\w.:/-])\d+\.\d+(?!\d|[.:]\w)(?! ?%| [A-Za-zµ]| \N{EN DASH}| ?\N{MULTIPLICATION SIGN})")
_EXCEPT = re.compile(
    r"probability of [\d.]+|coupling.* is [^)]*\)|p [=<] [\d.]+|hours lost per day [\d.]+"
    r"|\d+\.\d+\.\d+|at \d+\.\d+ [A-Z]{3}|\[[^]]*\]"
)
# What a program prints and nobody says: 6.57e-05, nan, 1 files. Names of a trace stand in code or come before a noun.
_PRINTED = re.compile(
    r"(?<![\w.])\d+(?:\.\d+)?e[-+]\d+|\bnan\b"
    r"|(?<![.,])(?<![\w.,] )\b1 (?:input )?(?:files|ranks|hosts|iterations|findings|collectives|messages)\b"
)
_MOST_VARIATION = 5.0  # times that of the iterations
_OF_STEPS = ("mean iteration", "mean step", "of an iteration", "an iteration takes", "they are the iteration")
_DENIALS = ("Nothing significant", "No failure mode exceeds", "No single culprit", "No certain culprit")
_NO_RANK = re.compile(rf"no rank(?:, no host)?(?: and no [a-z ]+)? costs more than {_SIZE}")
_FREE = "ends no earlier when it is replayed without that"
_FREE_RANK = re.compile(rf"([A-Z][\w-]* [^,.:]+), {_SIZE} an iteration in the ledger, but the job {_FREE}")
_DENIES_A_RANK = "No rank is consistently late"
_ACCUSES = re.compile(r"[Rr]ank \d+ (?:is the last|is slow|computes longer|is late|arrives last)")


class _Reader(HTMLParser):
    def __init__(self) -> None:
        super().__init__()
        self.open: list[tuple[str, list[str]]] = []
        self.silent = 0
        self.section = ""
        self.told: list[tuple[str, str, str]] = []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        found = dict(attrs)
        if tag == "section":
            self.section = found.get("id") or ""
        if tag in _SILENT:
            self.silent += 1
        if tag in _TOLD:
            self.open.append((tag, []))

    def handle_data(self, data: str) -> None:
        if self.open and not self.silent:
            self.open[-1][1].append(data)

    def handle_endtag(self, tag: str) -> None:
        if tag in _SILENT:
            self.silent -= 1
        if self.open and tag == self.open[-1][0]:
            _, texts = self.open.pop()
            text = re.sub(r"[\s\u00a0\u202f]+", " ", "".join(texts)).strip()
            if text and self.section not in _NOT_OF_THE_RUN:
                self.told.append((self.section, tag, text))


def sentences(html: str) -> list[tuple[str, str, str]]:
    """Section, element and text of everything the page says about the run, in its order."""
    reader = _Reader()
    reader.feed(html)
    reader.close()
    return reader.told


_MOST_SPREAD = 50


def contradictions(html: str, kind: str) -> list[str]:
    """Sentences that deny the verdict, contradict the header, rest on less than the clocks resolve, or lack a unit.

    Args:
        kind: of the verdict: `finding`, `nothing_significant` or `cannot_be_known`.
    """
    told = sentences(html)
    # A value beside its label has its unit there.
    running = [(section, text) for section, tag, text in told if tag in _RUNNING]
    found = [f"{section}: no words: {text}" for section, _, text in told if _PRINTED.search(text)]
    found += [f"{section}: no unit: {text}" for section, text in running if _BARE.search(_EXCEPT.sub("", text))]
    if kind == "finding":
        about_a_rank = any(text.startswith("Rank ") for section, _, text in told if section == "verdict")
        denials = (*_DENIALS, _DENIES_A_RANK) if about_a_rank else _DENIALS
        found += [f"{section}: denies: {text}" for section, _, text in told if text.startswith(denials)]
    if kind == "nothing_significant":
        titles = [(section, text) for section, tag, text in told if tag == "figcaption"]
        found += [f"{section}: accuses: {text}" for section, text in titles if _ACCUSES.search(text)]
    found += [*_against_the_header(told), *_without_steps(told), *_free_and_costly(told), *_spread_and_owned(told)]
    return [*found, *_below_resolution(told, html), *_beyond_the_negative(told), *_other_variation(told)]


def _against_the_header(told: list[tuple[str, str, str]]) -> list[str]:
    header = next((text for section, tag, text in told if not section and tag == "dd"), "")
    ranks = re.match(r"(\d+), all of the job", header)
    if not ranks:
        return []
    wrong = []
    for section, _, text in told:
        numbers = [int(size) for size in re.findall(r"\d+ of (\d+) ranks", text)]
        if any(number > int(ranks[1]) for number in numbers) or "Only one rank" in text:
            wrong.append(f"{section}: against the header: {text}")
    return wrong


def _free_and_costly(told: list[tuple[str, str, str]]) -> list[str]:
    """What is said to cost the job something although the verdict says that the job ends no earlier without it."""
    free = [found[1] for _, _, text in told for found in _FREE_RANK.finditer(text)]
    return [
        f"{section}: costs nothing: {text}"
        for section, _, text in told
        if "costs the job" in text and any(text.startswith(f"{who}, ") for who in free)
    ]


def _spread_and_owned(told: list[tuple[str, str, str]]) -> list[str]:
    """A largest owner of most of what the verdict calls spread over ranks."""
    if not any("spread over ranks" in text for _, _, text in told):
        return []
    owned = [(section, text, re.search(r"the largest owner, .*?, has (\d+) %", text)) for section, _, text in told]
    return [f"{section}: owned: {text}" for section, text, share in owned if share and int(share[1]) > _MOST_SPREAD]


def _without_steps(told: list[tuple[str, str, str]]) -> list[str]:
    """What speaks of iterations where the header says that no step was marked."""
    if not any(tag == "dd" and not section and text == "none marked" for section, tag, text in told):
        return []
    return [
        f"{section}: against the header: {text}"
        for section, _, text in told
        if any(words in text.lower() for words in _OF_STEPS)
    ]


def _below_resolution(told: list[tuple[str, str, str]], html: str) -> list[str]:
    """Titles that call a rank late by less than the clocks resolve."""
    plain = re.sub(r"[\s\u00a0\u202f]+", " ", re.sub(r"<[^>]*>", " ", html))
    limit = re.search(rf"waits under {_SIZE} support no finding", plain)
    if not limit:
        return []
    wrong = []
    for section, tag, text in told:
        late = re.search(rf"[Rr]ank \d+ .*?{_SIZE} after the median", text)
        if tag == "figcaption" and late and _ns(late) < _ns(limit):
            wrong.append(f"{section}: below resolution: {text}")
    return wrong


def _beyond_the_negative(told: list[tuple[str, str, str]]) -> list[str]:
    """Bars of one rank that are longer than what no rank is said to cost, where the page does not say why."""
    limits = [found for section, _, text in told if section == "verdict" and (found := _NO_RANK.search(text))]
    if not limits or any(_FREE in text for _, _, text in told):
        return []
    cells = [(section, text) for section, tag, text in told if tag == "td"]
    bars = [
        (who, size)
        for (section, who), (_, text) in pairwise(cells)
        if section == "waterfall" and re.search(r", rank \d+$", who) and (size := re.fullmatch(_SIZE, text))
    ]
    return [f"waterfall: beyond the negative: {who} {size[0]}" for who, size in bars if _ns(size) > _ns(limits[0])]


def _other_variation(told: list[tuple[str, str, str]]) -> list[str]:
    """The unpaced run's variation under pacing, where it is of a quite other size than the one told of the run.

    That of steps from end to end differs from that of iterations, which may overlap; a warm-up that one of them counts
    makes it many times as large.
    """
    strip = next((found for _, _, text in told if (found := re.search(r"they vary by ([\d.]+) %", text))), None)
    cells = [text for section, tag, text in told if section == "pacing" and tag == "td"]
    if strip is None or "none (as recorded)" not in cells:
        return []
    rest = cells[cells.index("none (as recorded)") + 1 :]
    row = rest[: next((n for n, text in enumerate(rest) if text.startswith(("adaptive", "bounded"))), len(rest))]
    paced = [float(found[1]) for text in row if (found := re.fullmatch(r"([\d.]+) %", text))]
    return [f"pacing: other variation: {one} %" for one in paced[-1:] if one > _MOST_VARIATION * float(strip[1])]


def _ns(found: re.Match[str]) -> float:
    return float(found[1].replace(" ", "")) * _UNITS_NS[found[2]]


def sizes_of_the_first_finding(html: str) -> set[str]:
    """Every size that the page gives the fault its verdict states, where it says what the fault costs."""
    plain = re.sub(r"[\s\u00a0\u202f]+", " ", re.sub(r"<[^>]*>", "|", html))
    verdict = re.search(rf"costs the job {_SIZE}", plain)
    tile = re.search(rf"Recoverable per iteration[| ]+{_SIZE}", plain)
    card = re.search(
        rf'id="finding-0".*?Recoverable per iteration.*?<dd>.*?{_SIZE}', html.replace("\u00a0", " "), re.DOTALL
    )
    return {f"{one[1]} {one[2]}" for one in (verdict, tile, card) if one}
