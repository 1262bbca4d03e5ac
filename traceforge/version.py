"""The version of this package, where every module may read it without importing the public names."""

__version__ = "0.1.0"
