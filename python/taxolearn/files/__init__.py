"""Model files: arrays and JSON with checksums, never pickle."""

from taxolearn.files.save_and_load import load, read_report, save

__all__ = [
    "load",
    "read_report",
    "save",
]
