"""The shared library: found, loaded once, its functions declared."""

from __future__ import annotations

import ctypes
import os

from . import _errors, _layouts

# The module typing takes longer to load than the rest of this file.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: The folder of the package and its files.
PACKAGE = os.path.dirname(os.path.realpath(__file__))
NATIVE = os.path.join(PACKAGE, "_native")


def _path() -> str:
    """`TRIREME_LIBRARY` names another library than the one in the package, for development."""
    named = os.environ.get("TRIREME_LIBRARY")
    if named:
        return named
    for folder in ("lib", "lib64"):
        place = os.path.join(NATIVE, folder)
        for name in sorted(os.listdir(place)) if os.path.isdir(place) else ():
            if name.startswith("libtrireme.so"):
                return os.path.join(place, name)
    raise ImportError(
        f"there is no libtrireme in {NATIVE}; install the wheel, or set TRIREME_LIBRARY to the path of libtrireme.so"
    )


def _load() -> ctypes.CDLL:
    library = ctypes.CDLL(_path())
    for name, (result, parameters) in _layouts.FUNCTIONS.items():
        function = getattr(library, name)
        function.restype = result
        function.argtypes = parameters
    return library


lib: Any = _load()


def check(status: int) -> None:
    """Raises the exception of a status that is not TR_OK."""
    if status != _layouts.TR_OK:
        raise _errors.make(status, lib.tr_error_message().decode("utf-8", "replace"))


def sized(kind: type[ctypes.Structure], **members: Any) -> Any:
    """A structure that begins with its size."""
    made = kind(**members)
    made.size = ctypes.sizeof(kind)
    return made


def text_of(call: Any, *arguments: Any) -> str:
    """The text that a function returns through its last parameter."""
    text = ctypes.c_char_p()
    check(call(*arguments, ctypes.byref(text)))
    value = (text.value or b"").decode("utf-8", "replace")
    lib.tr_text_free(text)
    return value


def path_of(path: str | os.PathLike[str]) -> bytes:
    return os.fsencode(path)
