"""Modules form no circle, not even through imports that only the type checker reads; a class name is used once."""

import ast
from collections import defaultdict
from collections.abc import Mapping
from graphlib import CycleError, TopologicalSorter

import grimp

from tests.conventions.test_source_tree import PYTHON, relative, tree


def circle_of(imports: Mapping[str, set[str]]) -> list[str]:
    """One circle of modules, the first of it again at the end; empty where there is none."""
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as error:
        return list(error.args[1])
    return []


def test_a_circle_is_found() -> None:
    assert circle_of({"a": {"b"}, "b": {"c"}, "c": set()}) == []
    assert set(circle_of({"a": {"b"}, "b": {"c"}, "c": {"a"}})) == {"a", "b", "c"}


def test_imports_form_no_circle_not_even_those_for_types() -> None:
    graph = grimp.build_graph("traceforge", exclude_type_checking_imports=False, cache_dir=None)

    assert circle_of({module: graph.find_modules_directly_imported_by(module) for module in graph.modules}) == []


def test_a_class_name_stands_for_one_thing() -> None:
    places = defaultdict(list)
    for path in PYTHON:
        for node in ast.walk(tree(path)):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(relative(path))

    assert {name: files for name, files in places.items() if len(files) > 1} == {}
