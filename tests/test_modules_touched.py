"""How many modules of the package a fit and a command run through: what somebody reads to follow them.

A module counts if a function of it is called. Modules that only re-export, and the loader of the core, have none.
"""

import pytest

FIT, TRAIN = 15, 25  # modules, at most

COUNT = """
    import sys
    import threading
    from inspect import CO_OPTIMIZED
    from pathlib import Path

    import taxolearn

    PACKAGE = Path(taxolearn.__file__).parent
    called = set()

    def profile(frame, event, argument):
        if event == "call" and frame.f_code.co_flags & CO_OPTIMIZED:  # bodies of modules and classes are not
            called.add(frame.f_code.co_filename)

    def modules():
        paths = [Path(name) for name in called if name.endswith(".py")]
        inside = [path.relative_to(PACKAGE) for path in paths if path.is_relative_to(PACKAGE)]
        return sorted(str(path) for path in inside if path.parts[0] != "_core")

    threading.setprofile(profile)
    sys.setprofile(profile)
"""
LEARNED_FIT = """
    import numpy as np

    X, y = np.random.default_rng(0).normal(size=(40, 3)), np.repeat(["a/b", "a/c", "d/e", "d/f"], 10)
    taxonomy = taxolearn.Taxonomy.from_labels(y)
    called.clear()
    taxolearn.KernelLogisticClassifier(taxonomy=taxonomy).fit(X, y)
    sys.setprofile(None)
    print("\\n".join(modules()))
"""
TRAIN_COMMAND = """
    from taxolearn.cli import main

    folder = Path(sys.argv[1])
    rows = ["red apple,fruit/apple", "green pear,fruit/pear", "iron saw,tool"]
    (folder / "t.csv").write_text("\\n".join(["text,label", *20 * rows]))
    called.clear()
    arguments = ["--text", "text", "--label", "label", "-o", str(folder / "m.taxo"), "--evaluations", "2", "--json"]
    code = main(["train", str(folder / "t.csv"), *arguments, "--model", "softmax", "--hold-out", "0"])
    sys.setprofile(None)
    assert code == 0
    print("---", *modules(), sep="\\n")
"""


@pytest.mark.parametrize(("program", "limit"), [(LEARNED_FIT, FIT), (TRAIN_COMMAND, TRAIN)], ids=["fit", "train"])
def test_modules_touched(run_python, tmp_path, program, limit):
    done = run_python(COUNT + program, tmp_path)
    assert done.returncode == 0, done.stderr
    touched = done.stdout.rpartition("---\n")[2].split()
    assert "estimators/kernel_logistic.py" in touched
    assert len(touched) <= limit, f"{len(touched)} modules:\n" + "\n".join(touched)
