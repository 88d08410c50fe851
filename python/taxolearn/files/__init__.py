"""Model files: arrays and JSON with checksums, never pickle."""

from taxolearn.files.models import load, read_report, save

__all__ = [
    "load",
    "read_report",
    "save",
]
