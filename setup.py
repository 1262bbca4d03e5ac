"""The part of the build that pyproject.toml cannot state: the optional scanner in C.

Without a C compiler the installation succeeds, and the Python reader of Kineto traces does all the work.
"""

from pathlib import Path

from setuptools import Extension, setup

_FOLDER = Path("traceforge/sources/kineto/native")

setup(
    ext_modules=[
        Extension(
            "traceforge.sources.kineto.native._scanner",
            sources=sorted(map(str, _FOLDER.glob("*.c"))),
            depends=sorted(map(str, _FOLDER.glob("*.h"))),
            extra_compile_args=["-std=c11", "-O3"],
            py_limited_api=True,
            optional=True,
        )
    ],
    options={"bdist_wheel": {"py_limited_api": "cp311"}},
)
