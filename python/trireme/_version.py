"""Versions, as the library reports them."""

from ._library import lib

__version__: str = lib.tr_version().decode()

#: The version of the arithmetic: it changes when, and only when, equal jobs end with other hashes.
numerics_version: int = lib.tr_numerics_version()
