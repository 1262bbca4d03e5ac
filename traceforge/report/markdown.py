"""The first screen as Markdown, for a pull request or a chat. In: the layout of the page. Out: text.

Names from traces are text there, too: every sign that Markdown, HTML or GitHub read as something else is escaped, so
that no name becomes a link, an image, a mention, an issue, a heading or an end of a code block.
"""

from collections.abc import Sequence

from traceforge.report.answer_blocks import Advice, Assurances, VerdictPanel
from traceforge.report.blocks import Block, Briefs, Section, Tiles
from traceforge.report.formatting import clean, plain
from traceforge.report.layout import Layout
from traceforge.report.page_header import PageHeader

# A backslash does not keep GitHub from linking addresses, mentions and issues: these signs are written as entities.
_ENTITIES = {"<": "&lt;", ">": "&gt;", "&": "&amp;", "@": "&#64;", "#": "&#35;", ":": "&#58;", ".": "&#46;"}
_BACKSLASHED = "\\`*_{}[]()!|~$^="
_MOST_SIGNS = 2_000


def markdown(header: PageHeader, layout: Layout) -> str:
    """The verdict, its cost, what to do, what else was found, and how far to trust it."""
    blocks: list[Block] = []
    for part in layout.first:
        blocks += part.content.blocks if isinstance(part.content, Section) else []
    paragraphs = [f"### {escaped(header.name)}"]
    for block in blocks:
        if isinstance(block, VerdictPanel):
            paragraphs += _verdict(block)
        elif isinstance(block, Tiles):
            paragraphs.append(_tiles(block))
        elif isinstance(block, Briefs):
            lines = [f"- {escaped(brief.text)} {escaped(brief.cost)}" for brief in block.briefs]
            paragraphs.append("\n".join([f"**{escaped(block.title)}**", "", *lines]))
        elif isinstance(block, Assurances):
            paragraphs += [f"**{escaped(title)}.** {escaped(text)}" for title, text in block.entries]
    facts = " · ".join(f"{escaped(label)}: {escaped(value)}" for label, value in header.facts)
    paragraphs.append(f"<sub>traceforge report · {facts}</sub>")
    return "\n".join(plain("\n\n".join(filter(None, paragraphs)).split("\n"))) + "\n"


def _verdict(panel: VerdictPanel) -> list[str]:
    places = " · ".join(escaped(place.replace("`", "")) for place in panel.places)
    label = f"**{escaped(panel.label)}**" if panel.label else ""
    paragraphs = [
        " · ".join(filter(None, [label, places])),
        f"**{escaped(panel.headline)}**",
        f"**{escaped(panel.since)}**" if panel.since else "",
        escaped(panel.explanation),
    ]
    if panel.bound:
        paragraphs.append(f"**What bounds the job:** {escaped(panel.bound)}")
    if panel.steps:
        paragraphs.append("\n".join(["**Next**", "", *_steps(panel.steps)]))
    return paragraphs


def _steps(steps: Sequence[Advice]) -> list[str]:
    lines = []
    for number, step in enumerate(steps, start=1):
        lines.append(f"{number}. {escaped(step.text)}")
        if step.command:
            # Indented code ends with its line and knows no signs; the command holds neither line ends nor controls.
            lines += ["", f"       {clean(step.command, _MOST_SIGNS)}", ""]
    return lines


def _tiles(block: Tiles) -> str:
    if not block.tiles:
        return ""
    head = " | ".join(escaped(tile.label) for tile in block.tiles)
    values = " | ".join(f"**{escaped(tile.value)}**" for tile in block.tiles)
    details = " | ".join(escaped(tile.detail) for tile in block.tiles)
    return "\n".join([f"| {head} |", f"|{' --- |' * len(block.tiles)}", f"| {values} |", f"| {details} |"])


def escaped(text: str) -> str:
    """A text that Markdown shows letter by letter, on one line."""
    line = clean(text, _MOST_SIGNS)
    shown = "".join(_ENTITIES.get(sign) or (f"\\{sign}" if sign in _BACKSLASHED else sign) for sign in line)
    return _with_readable(_with_readable(shown, "."), ":")


def _with_readable(text: str, sign: str) -> str:
    """The text with those signs as they are that stand before a space or within a number, where they link nothing."""
    entity = _ENTITIES[sign]
    pieces = text.split(entity)
    joined = pieces[0]
    for piece in pieces[1:]:
        is_harmless = not piece or piece[0] in " ,;" or (piece[0].isdigit() and joined[-1:].isdigit())
        joined += (sign if is_harmless else entity) + piece
    return joined
