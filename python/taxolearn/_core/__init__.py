"""The compiled core, at the best instruction set that this processor runs.

The extension is built once per level; importing this module loads one of them and shows its names as its own.
The environment variable ``TAXOLEARN_SIMD`` asks for one level. ``simd_level`` names the one that was loaded.
"""

import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib import import_module

from taxolearn._core import _cpu

# From the least to the most able. A "native" module was built for the machine at hand, so it always fits.
_LEVELS = ("generic", "v2", "v3", "v4", "native")


def _usable_levels(cpu: str, built: Sequence[str]) -> list[str]:
    """Levels that were built and that the processor runs, worst first."""
    runs = {*_LEVELS[: _LEVELS.index(cpu) + 1], "native"}
    return [level for level in _LEVELS if level in built and level in runs]


def _choose_level(cpu: str, built: Sequence[str], requested: str) -> str:
    """The requested level, or the best usable one if the request is empty."""
    usable = _usable_levels(cpu, built)
    if not usable:
        raise ImportError(
            f"no compiled core of taxolearn fits this processor (level {cpu}; built: {', '.join(built)}); "
            "build from source with TAXOLEARN_LEVELS=generic"
        )
    if not requested:
        return usable[-1]
    if requested not in usable:
        raise ImportError(
            f"TAXOLEARN_SIMD={requested!r} is not available here: choose one of {', '.join(usable)} "
            f"(processor level {cpu}; built: {', '.join(built)})"
        )
    return requested


@contextmanager
def _patient_threads() -> Iterator[None]:
    """Lets OpenMP's threads sleep while they wait, unless the user has chosen otherwise.

    By default they spin, which on a machine with other work keeps the very thread they wait for from running: one
    competing process made fits seven times slower. The runtime reads the setting when it is loaded, with the core;
    afterwards the environment is as it was, so that other libraries and child processes do not see it.
    """
    chosen = {"OMP_WAIT_POLICY", "GOMP_SPINCOUNT", "KMP_BLOCKTIME"} & os.environ.keys()
    if not chosen:
        os.environ["OMP_WAIT_POLICY"] = "passive"
    try:
        yield
    finally:
        if not chosen:
            del os.environ["OMP_WAIT_POLICY"]


simd_level = _choose_level(_cpu.level(), _cpu.built_levels(), os.environ.get("TAXOLEARN_SIMD", ""))
with _patient_threads():
    _module = import_module(f"taxolearn._core._core_{simd_level}")
globals().update({name: value for name, value in vars(_module).items() if not name.startswith("__")})
