"""Resident memory of this process, where the system reports it."""

from pathlib import Path


def reset_peak() -> float | None:
    """Make the peak of the resident memory start anew; return what is resident now, in bytes."""
    try:
        Path("/proc/self/clear_refs").write_text("5")
    except OSError:
        return None  # no Linux, or not allowed: no figure rather than a wrong one
    return resident("VmRSS")


def resident(name: str) -> float | None:
    """``VmRSS``, what is resident, or ``VmHWM``, its peak, in bytes."""
    status = Path("/proc/self/status")
    if not status.exists():
        return None
    values = [line.split()[1] for line in status.read_text().splitlines() if line.startswith(f"{name}:")]
    return 1024 * float(values[0]) if values else None


def growth(before: float | None, name: str = "VmHWM") -> float | None:
    """By how many bytes the peak, or what is resident, exceeds ``before``."""
    now = resident(name)
    return None if before is None or now is None else now - before


def megabytes(count: float | None) -> float | None:
    """Bytes in MB, if they are known."""
    return None if count is None else count / 1e6
