"""How much memory a fit may take."""

import os
import re
from numbers import Real
from pathlib import Path

__all__ = ["check_memory_limit"]

_UNITS = {"B": 1.0, "KB": 1e3, "MB": 1e6, "GB": 1e9, "TB": 1e12}
_SHARE = 0.5  # of the machine's memory, where nothing is said
_UNKNOWN = 4e9  # bytes, where the machine says nothing
_GROUP_LIMITS = ("/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes")


def check_memory_limit(limit: object) -> float:
    """Bytes from a number of them or a text like "8 GB"; None means half of the memory this process may use."""
    if limit is None:
        return _SHARE * _available()
    if isinstance(limit, str):
        found = re.fullmatch(r"\s*(\d+(?:\.\d*)?)\s*([kKmMgGtT]?[bB])\s*", limit)
        if found is None:
            raise ValueError(f'memory_limit is {limit!r}, expected a number of bytes or a text like "8 GB"')
        return float(found[1]) * _UNITS[found[2].upper()]
    if isinstance(limit, bool) or not isinstance(limit, Real):
        raise TypeError(f'memory_limit must be a number of bytes or a text like "8 GB", got {type(limit).__name__}')
    bytes_ = float(limit)
    if not 0 <= bytes_ < float("inf"):
        raise ValueError(f"memory_limit must be finite and at least 0, got {limit!r}")
    return bytes_


def _available() -> float:
    """The machine's memory, or what a container grants of it. It does not depend on what else is running."""
    try:
        physical = float(os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"))
    except (AttributeError, OSError, ValueError):
        return _UNKNOWN
    return min(physical, *map(_limit, _GROUP_LIMITS))


def _limit(path: str) -> float:
    try:
        return float(Path(path).read_text())
    except (OSError, ValueError):  # no such group, or "max"
        return float("inf")
