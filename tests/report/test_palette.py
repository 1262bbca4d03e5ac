"""Colours keep apart for every reader, and words stand out of their ground, on the light page and on the dark."""

from collections.abc import Mapping
from itertools import combinations

import numpy as np
import pytest
from numpy.typing import NDArray

from traceforge.report.palette import DARK, HATCHED, LIGHT, MODES, PHASES, css_variables

Vector = NDArray[np.float64]

# Linear RGB as seen without red, green or blue cones (Machado, Oliveira and Fernandes 2009, full severity).
_VISION = {
    "all cones": np.eye(3),
    "protanopia": np.array(
        [[0.152286, 1.052583, -0.204868], [0.114503, 0.786281, 0.099216], [-0.003882, -0.048116, 1.051998]]
    ),
    "deuteranopia": np.array(
        [[0.367322, 0.860646, -0.227968], [0.280085, 0.672501, 0.047413], [-0.011820, 0.042940, 0.968881]]
    ),
    "tritanopia": np.array(
        [[1.255528, -0.076749, -0.178779], [-0.078411, 0.930809, 0.147602], [0.004733, 0.691367, 0.303900]]
    ),
}
_TO_XYZ = np.array(
    [[0.4124564, 0.3575761, 0.1804375], [0.2126729, 0.7151522, 0.0721750], [0.0193339, 0.1191920, 0.9503041]]
)
_WHITE = np.array([0.95047, 1.0, 1.08883])
_APART = 18.0  # in CIE L*a*b*; 2.3 is just noticeable side by side
_READABLE = 4.5

SCHEMES = {"light": LIGHT, "dark": DARK}


def linear(colour: str) -> Vector:
    channels = np.array([int(colour[place : place + 2], 16) for place in (1, 3, 5)]) / 255
    return np.where(channels <= 0.04045, channels / 12.92, ((channels + 0.055) / 1.055) ** 2.4)


def lab(colour: Vector) -> Vector:
    ratio = _TO_XYZ @ colour / _WHITE
    f = np.where(ratio > 0.008856, np.cbrt(ratio), 7.787 * ratio + 16 / 116)
    return np.array([116 * f[1] - 16, 500 * (f[0] - f[1]), 200 * (f[1] - f[2])])


def distance(one: str, other: str, vision: Vector) -> float:
    first, second = (lab(np.clip(vision @ linear(colour), 0, 1)) for colour in (one, other))
    return float(np.linalg.norm(first - second))


def contrast(one: str, other: str) -> float:
    weights = np.array([0.2126, 0.7152, 0.0722])
    light, dark = sorted((float(linear(colour) @ weights) for colour in (one, other)), reverse=True)
    return (light + 0.05) / (dark + 0.05)


@pytest.mark.parametrize("vision", _VISION)
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("names", [PHASES, MODES])
def test_colours_of_one_chart_keep_apart_for_every_kind_of_sight(
    names: tuple[str, ...], scheme: str, vision: str
) -> None:
    colours = SCHEMES[scheme]
    for one, other in combinations(names, 2):
        if one in HATCHED or other in HATCHED:
            continue  # the hatch tells them apart whatever the colour
        assert distance(colours[one], colours[other], _VISION[vision]) >= _APART, (one, other)


@pytest.mark.parametrize("colours", SCHEMES.values(), ids=SCHEMES)
@pytest.mark.parametrize("word", ["text", "muted", "accent", "good", "caution", "bad"])
@pytest.mark.parametrize("ground", ["background", "surface", "sunken"])
def test_words_can_be_read_on_every_ground(colours: Mapping[str, str], word: str, ground: str) -> None:
    assert contrast(colours[word], colours[ground]) >= _READABLE


@pytest.mark.parametrize("colours", SCHEMES.values(), ids=SCHEMES)
def test_the_diverging_scale_grows_away_from_its_middle_on_both_sides(colours: Mapping[str, str]) -> None:
    steps = [lab(linear(colours[f"diverging-{step}"]))[0] for step in range(9)]
    for side in (steps[4::-1], steps[4:]):
        away = [abs(lightness - side[0]) for lightness in side]
        assert away == sorted(away)


def test_print_is_always_light() -> None:
    assert "@media screen and (prefers-color-scheme: dark)" in css_variables()
