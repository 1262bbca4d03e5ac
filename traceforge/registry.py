"""Plug-ins, found by listing their folder. In: a package name. Out: the named object of each module in it.

A plug-in is one file that exposes one object (`SOURCE`, `CAUSE`, `POLICY`, `SECTION`). Modules whose name starts
with an underscore are not plug-ins. Installed packages add plug-ins of their own through an entry point, such as

    [project.entry-points."traceforge.policies"]
    my_policy = "my_package.my_policy:POLICY"
"""

import importlib
import pkgutil

from traceforge.errors import PluginError


def discover(package: str, attribute: str) -> dict[str, object]:
    """All plug-ins of a folder by module name, in alphabetical order.

    Raises:
        PluginError: a module of the folder does not expose `attribute`.
    """
    folder = importlib.import_module(package)
    names = sorted(module.name for module in pkgutil.iter_modules(folder.__path__))
    return {name: _load(package, name, attribute) for name in names if not name.startswith("_")}


def installed(group: str) -> dict[str, object]:
    """All plug-ins of installed packages by the name of their entry point, in alphabetical order.

    Args:
        group: such as `traceforge.policies`.

    Raises:
        PluginError: an entry point names something that cannot be imported.
    """
    found = {}
    from importlib.metadata import entry_points  # takes longer to load than most commands that need no plug-ins

    for entry in sorted(entry_points(group=group), key=lambda entry: entry.name):
        try:
            found[entry.name] = entry.load()
        except (ImportError, AttributeError) as error:
            raise PluginError(
                f"the plug-in cannot be loaded: {error}",
                where=f"entry point {entry.name} = {entry.value}",
                hint=f"correct or remove the package that declares it in `{group}`",
            ) from error
    return found


def _load(package: str, name: str, attribute: str) -> object:
    module = importlib.import_module(f"{package}.{name}")
    if not hasattr(module, attribute):
        raise PluginError(
            f"the plug-in does not define `{attribute}`",
            where=f"{package}.{name}",
            hint=f"every file of that folder must expose one object named `{attribute}`",
        )
    return getattr(module, attribute)
