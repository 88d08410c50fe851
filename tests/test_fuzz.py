"""The targets of ``fuzz.py`` on files that were changed at random: each is read, or refused by a ``ValueError``."""

import warnings

import numpy as np
import pytest
from fuzz import make_targets

FILES = 60


@pytest.fixture(scope="module")
def targets(tmp_path_factory):
    return make_targets(tmp_path_factory.mktemp("fuzz"))


def changed(seed, generator):
    """Some bytes replaced, left out, repeated or inserted."""
    content = bytearray(seed)
    for _ in range(int(generator.integers(1, 5))):
        begin = int(generator.integers(len(content) + 1))
        end = begin + int(generator.integers(1, 12))
        kind = generator.integers(5)
        if kind == 0:
            content[begin:end] = generator.bytes(end - begin)
        elif kind == 1:
            del content[begin:end]
        elif kind == 2:
            content[begin:begin] = content[begin:end]
        elif kind == 3:
            content[begin:end] = str(generator.choice([0, -1, 2**31, 2**63, "NaN", '"', "\n", "[", "1e999"])).encode()
        elif content:
            content[begin % len(content)] ^= 1 << int(generator.integers(8))
    return bytes(content)


@pytest.mark.parametrize("number", range(22))
def test_changed_files(number, targets):
    assert len(targets) == 22
    target = list(targets.values())[number]
    generator = np.random.default_rng(number)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of scikit-learn, about settings that make no sense
        for seed in target.seeds:
            target.run(seed)
            for _ in range(FILES):
                target.run(changed(seed, generator))
