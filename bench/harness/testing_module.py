"""The module of parts that the package does not show."""

from typing import Any


def load() -> Any:
    """Import taxolearn_testing, or end with a message that says how to build it."""
    try:
        import taxolearn_testing
    except ImportError:
        raise SystemExit(
            "this suite times parts that the package does not show: build them with\n"
            "cmake -S . -B build/cpp -DTAXOLEARN_BUILD_PYTHON=OFF -DTAXOLEARN_BUILD_TEST_MODULE=ON && "
            "cmake --build build/cpp\nand put build/cpp into PYTHONPATH"
        ) from None
    return taxolearn_testing
