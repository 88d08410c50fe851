"""Every built core loads where the processor runs it, and a wrong request is answered with the choices."""

import os
import subprocess
import sys

import pytest

from taxolearn import _core
from taxolearn._core import _cpu

REPORT = "from taxolearn import _core; print(_core.simd_level, _core._module.__name__)"
USABLE = _core._usable_levels(_cpu.level(), _cpu.built_levels())


def import_core(simd: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, "-c", REPORT],
        env={**os.environ, "TAXOLEARN_SIMD": simd},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.mark.parametrize("level", USABLE)
def test_each_usable_level_loads_on_request(level):
    done = import_core(level)
    assert done.returncode == 0, done.stderr
    assert done.stdout.split() == [level, f"taxolearn._core._core_{level}"]


def test_best_usable_level_is_the_default():
    done = import_core("")
    assert done.returncode == 0, done.stderr
    assert done.stdout.split()[0] == USABLE[-1]


def test_unknown_level_names_the_choices():
    done = import_core("v99")
    assert done.returncode != 0
    assert "ImportError: TAXOLEARN_SIMD='v99'" in done.stderr
    assert f"choose one of {', '.join(USABLE)}" in done.stderr


def test_core_shows_the_names_of_the_loaded_module():
    names = {name for name in vars(_core._module) if not name.startswith("__")}
    assert names
    assert names <= set(vars(_core))


@pytest.mark.parametrize(
    ("cpu", "built", "requested", "expected"),
    [
        ("v4", ["v2", "v3", "v4"], "", "v4"),
        ("v3", ["v2", "v3", "v4"], "", "v3"),
        ("v4", ["v2", "v3"], "", "v3"),
        ("v4", ["v2", "v3", "v4"], "v2", "v2"),
        ("v3", ["native"], "", "native"),
        ("v4", ["generic"], "", "generic"),
        ("generic", ["generic"], "", "generic"),
    ],
)
def test_choice_of_level(cpu, built, requested, expected):
    assert _core._choose_level(cpu, built, requested) == expected


@pytest.mark.parametrize(
    ("cpu", "built", "requested", "message"),
    [
        ("v2", ["v2", "v3", "v4"], "v3", "choose one of v2 "),
        ("v4", ["v2", "v3"], "v4", "choose one of v2, v3 "),
        ("generic", ["v2", "v3"], "", "fits this processor"),
    ],
)
def test_impossible_choice_is_an_import_error(cpu, built, requested, message):
    with pytest.raises(ImportError, match=message):
        _core._choose_level(cpu, built, requested)
