"""Colours of the report. In: nothing. Out: colours by name for the light and the dark page, and their CSS.

Charts name colours as CSS variables (`var(--compute)`), so that one drawing follows the colour scheme of the
reader and prints on white. `wait`, `communication` and `unexplained` are hatched as well: no statement rests on colour
alone. The phases and the modes keep apart under simulated protanopia, deuteranopia and tritanopia (tested).
"""

from collections.abc import Mapping

from traceforge.vocabulary import vocabulary

PHASES = vocabulary().phases
COMMUNICATING = ("transfer", "wait", "communication")
MODES = (
    "synchronization_amplification",
    "fabric_contention",
    "gpu_locality",
    "runtime_control_plane",
    "unexplained",
)
DIVERGING_STEPS = 9

_PAGE_LIGHT = {
    "background": "#FAFAF8",
    "surface": "#FFFFFF",
    "sunken": "#F2F3F1",
    "text": "#1E2329",
    "muted": "#59626E",
    "line": "#DFE2E5",
    "grid": "#E6E8EA",
    "accent": "#24588F",
    "good": "#1F7A4D",
    "caution": "#8F5D00",
    "bad": "#B02A30",
}
_PAGE_DARK = {
    "background": "#14171B",
    "surface": "#1B1F25",
    "sunken": "#22272E",
    "text": "#E7E9EC",
    "muted": "#A3ACB8",
    "line": "#343B44",
    "grid": "#2B3138",
    "accent": "#8DBBEA",
    "good": "#6CCB97",
    "caution": "#EBB654",
    "bad": "#F58D8A",
}
_PHASES_LIGHT = dict(
    zip(PHASES, ("#7FC594", "#2B68B4", "#CF3F43", "#7B5AA6", "#A68FB8", "#D9A21B", "#454A56", "#DBE1E8"), strict=True)
)
_PHASES_DARK = dict(
    zip(PHASES, ("#79CFA3", "#437FD6", "#EA5A58", "#9A78D0", "#DDB2F0", "#F0B244", "#848B97", "#434950"), strict=True)
)
_MODES_LIGHT = dict(zip(MODES, ("#AE3A3D", "#1C5FAF", "#22A9C1", "#D0A042", "#85898E"), strict=True))
_MODES_DARK = dict(zip(MODES, ("#F0625F", "#3A83D6", "#6DD3DD", "#EFAA3A", "#6B717D"), strict=True))
_DIVERGING_LIGHT = ("#43307F", "#7563AB", "#A9A0CD", "#D6D2E6", "#F3F2F0", "#F9DDB8", "#F0AF62", "#CC721B", "#84400A")
_DIVERGING_DARK = ("#C3B8F0", "#978AD0", "#6C619F", "#474168", "#2A2E35", "#5E452A", "#9A6526", "#D98A2B", "#FFC67A")


def _diverging(colours: tuple[str, ...]) -> dict[str, str]:
    return {f"diverging-{step}": colour for step, colour in enumerate(colours)}


LIGHT: Mapping[str, str] = {**_PAGE_LIGHT, **_PHASES_LIGHT, **_MODES_LIGHT, **_diverging(_DIVERGING_LIGHT)}
DARK: Mapping[str, str] = {**_PAGE_DARK, **_PHASES_DARK, **_MODES_DARK, **_diverging(_DIVERGING_DARK)}
HATCHED = ("wait", "communication", "unexplained")


def variable(name: str) -> str:
    """A colour as charts and CSS name it, such as `var(--accent)`."""
    return f"var(--{name})"


def fill(name: str) -> str:
    """What a chart fills the areas of a phase or a mode with: a colour, or a hatch where there is one."""
    return f"url(#hatch-{name})" if name in HATCHED else variable(name)


def css_variables() -> str:
    """The rules that set every colour: light by default and in print, dark where the reader prefers it."""
    light, dark = _declarations(LIGHT), _declarations(DARK)
    return (
        f":root {{ color-scheme: light; {light} }}\n"
        f"@media screen and (prefers-color-scheme: dark) {{ :root {{ color-scheme: dark; {dark} }} }}\n"
        f"{_swatch_rules()}"
    )


def _declarations(colours: Mapping[str, str]) -> str:
    return " ".join(f"--{name}: {colour};" for name, colour in colours.items())


def _swatch_rules() -> str:
    names = [*PHASES, *MODES, *(f"diverging-{step}" for step in range(DIVERGING_STEPS))]
    return "\n".join(f".swatch-{name} {{ fill: {fill(name)}; }}" for name in names)
