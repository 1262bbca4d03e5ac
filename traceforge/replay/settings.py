"""Settings as people write them. In: text such as `fix_rank:rank=2,share=0.5`. Out: the name, and all its parameters.

Policies and edits are written alike; what a value may be beyond a finite number is theirs to say.
"""

from collections.abc import Mapping

from traceforge.errors import UsageError

# Numbers, or words such as the name of a cause.
Settings = Mapping[str, float | str]


def parse_settings(
    text: str, what: str, whats: str, defaults: Mapping[str, Settings]
) -> tuple[str, dict[str, float | str]]:
    """A name and its parameters, those that are not mentioned at their defaults.

    Args:
        what, whats: what is named, such as `policy`, and several of them.
        defaults: parameters of each by name; a text where a word is expected.

    Raises:
        UsageError: there is no such name or parameter, or a value is no finite number where one is expected.
    """
    name, _, rest = text.partition(":")
    if name not in defaults:
        raise UsageError(f"there is no {what} `{name}`", hint=f"{whats} are: {', '.join(defaults)}")
    settings = dict(defaults[name])
    for item in filter(None, rest.split(",")):
        key, _, value = item.partition("=")
        if key not in settings:
            known = ", ".join(settings) or "none"
            raise UsageError(f"{what} `{name}` has no parameter `{key}`", hint=f"its parameters are: {known}")
        default = settings[key]
        settings[key] = value if isinstance(default, str) else _number(key, value, default)
    return name, settings


def format_settings(settings: Settings) -> str:
    """Settings as they are written on the command line; empty where there are none."""
    return ",".join(
        f"{key}={value if isinstance(value, str) else format(value, 'g')}" for key, value in settings.items()
    )


def _number(key: str, text: str, default: float) -> float:
    try:
        value = float(text)
    except ValueError:
        raise UsageError(f"`{key}={text}` is not a number", hint=f"such as {key}={default:g}") from None
    if not abs(value) < float("inf"):
        raise UsageError(f"`{key}={text}` must be a finite number")
    return value
