"""The search for hyperparameters: it finds minima, survives failures, stops when told, and goes on where it was."""

import json
import math
import os
import re
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import scipy.optimize
from test_interrupt import on_a_terminal
from threadpoolctl import threadpool_limits
from toy_objectives import Toy, quadratic, rosenbrock

from taxolearn.progress import _Budget, learning_progress
from taxolearn.tuning import search as _learning
from taxolearn.tuning.search import learn

HERE = Path(__file__).parent
EXACT = ("theta", "value", "gradient", "converged", "gap", "tolerance")  # of an evaluation, always the same


def beyond(limit):
    """Evaluations fail where a parameter is larger in size."""
    return lambda theta, number, tol: np.abs(theta).max() > limit


@pytest.fixture(autouse=True)
def quick_disk(monkeypatch):
    """Waiting for the disk and for other threads would take most of the time of these searches for nothing."""

    def replace_without_waiting(path, target):
        target.unlink(missing_ok=True)
        return path.rename(target)

    monkeypatch.setattr(os, "fsync", lambda descriptor: None)
    monkeypatch.setattr(Path, "replace", replace_without_waiting)
    with threadpool_limits(1):
        yield


PROBLEMS = {
    "quadratic": lambda **options: Toy(quadratic, [3.0, -2.0, 0.0], **options),
    "rosenbrock": lambda **options: Toy(rosenbrock, [-1.2, 1.0], **options),
    "wall": lambda **options: Toy(rosenbrock, [-1.2, 1.0], fails=beyond(1.3), **options),
    "stalling": lambda **options: Toy(quadratic, [3.0, -2.0, 0.0], fails=lambda x, k, tol: x[0] < 2, **options),
    "bounds": lambda **options: Toy(quadratic, [3.0, 0.0], bounds=[[2, 5], [-1, 1]], **options),
    "second try": lambda **options: Toy(quadratic, [3.0], fails=lambda x, k, tol: x[0] == 3 and tol < 1e-2, **options),
    "failing": lambda **options: Toy(quadratic, [3.0], fails=lambda x, k, tol: True, **options),
}


def assert_same(first, second):
    """Bit by bit, but for times."""
    assert first.status == second.status
    assert first.message == second.message
    assert first.best == second.best
    assert len(first.evaluations) == len(second.evaluations)
    for one, other in zip(first.evaluations, second.evaluations, strict=True):
        for name in EXACT:
            assert np.asarray(getattr(one, name)).tobytes() == np.asarray(getattr(other, name)).tobytes(), name


def interrupt_at(k):
    def disturb(number, progress):
        if number == k:
            raise KeyboardInterrupt

    return disturb


@pytest.mark.parametrize("name", ["quadratic", "rosenbrock", "wall"])
def test_finds_the_minimum(name):
    toy = PROBLEMS[name]()
    result = learn(toy, tol=1e-6)
    assert result.status == "converged"
    # Another method, on the function itself.
    other = scipy.optimize.minimize(lambda x: toy.function(x)[0], toy.theta, method="Nelder-Mead", tol=1e-9)
    np.testing.assert_allclose(result.theta, other.x, atol=0.02)
    assert result.values[result.best] == pytest.approx(other.fun, abs=3e-6)
    assert len(toy.calls) < 60


def test_stops_at_a_small_gradient():
    for tol in (1e-1, 1e-2, 1e-3):
        result = learn(PROBLEMS["quadratic"](), tol=tol)
        assert result.status == "converged"
        assert f"tol={tol:g}" in result.message
        assert result.gradient_norms[-1] <= tol
        assert (result.gradient_norms[:-1] > tol).all()


def test_stops_at_a_small_decrease():
    result = learn(PROBLEMS["rosenbrock"](), tol=0)
    assert result.status == "converged"
    assert "less than 0.0001" in result.message
    assert result.gradient_norms[-1] > 0


def test_trace_is_what_was_evaluated():
    toy = PROBLEMS["wall"]()
    result = learn(toy)
    thetas, tolerances = zip(*toy.calls, strict=True)
    np.testing.assert_array_equal(result.thetas, thetas)
    np.testing.assert_array_equal([evaluation.tolerance for evaluation in result.evaluations], tolerances)
    np.testing.assert_array_equal(result.products, 10 + np.arange(len(thetas)))
    np.testing.assert_array_equal(result.seconds, 0.25)
    np.testing.assert_array_equal(result.converged, [np.abs(theta).max() <= 1.3 for theta in thetas])
    assert not result.converged.all()
    np.testing.assert_allclose(result.values, [rosenbrock(theta)[0] for theta in thetas], atol=1e-6)
    norms = [
        max(
            min(abs(slope), x + 11 if slope > 0 else 11 - x)
            for x, slope in zip(theta, rosenbrock(theta)[1], strict=True)
        )
        for theta in thetas
    ]
    np.testing.assert_allclose(result.gradient_norms, norms)
    values = np.where(result.converged, result.values, np.inf)
    assert result.best == values.argmin()
    np.testing.assert_array_equal(result.theta, thetas[result.best])
    # The inner state moves with the best value, and never after a failure.
    assert toy.accepted == [k for k in range(len(values)) if values[k] < values[:k].min(initial=np.inf)]


def test_fits_get_more_accurate_as_the_gradient_falls():
    result = learn(PROBLEMS["rosenbrock"](), tol=1e-5)
    tolerances = [evaluation.tolerance for evaluation in result.evaluations]
    for k in range(1, len(tolerances)):
        best = min(range(k), key=lambda i: result.values[i])
        ratio = result.gradient_norms[best] / result.gradient_norms[0]
        assert tolerances[k] == pytest.approx(np.clip(1e-3 * ratio, 3e-5, 1e-3), rel=1e-9)
    assert tolerances[0] == 1e-3
    assert min(tolerances) == 3e-5


def test_no_step_is_too_long():
    def shallow(theta):
        """A valley so wide that the second quasi-Newton step would lead to its other end."""
        return 10 + 0.005 * ((theta - 9) ** 2).sum(), 0.01 * (theta - 9)

    result = learn(Toy(shallow, [0.0]), tol=1e-6)
    assert result.status == "converged"
    np.testing.assert_allclose(result.theta, 9, atol=0.01)
    steps = np.abs(np.diff(result.thetas[:, 0]))
    assert 2.0 < steps.max() <= 3.0


def test_failure_shortens_the_step():
    toy = Toy(quadratic, [6.0, 6.0], fails=lambda theta, number, tol: number in (1, 2))
    start, first, second, third = learn(toy, max_evaluations=4).thetas
    assert np.linalg.norm(first - start) == pytest.approx(1)
    np.testing.assert_allclose(second - start, (first - start) / 4)
    np.testing.assert_allclose(third - start, (first - start) / 16)
    assert learn(Toy(quadratic, [6.0, 6.0], fails=lambda theta, number, tol: number in (1, 2))).status == "converged"


@pytest.mark.parametrize("k", [1, 2, 5, 9])
def test_failure_anywhere_on_the_way(k):
    toy = Toy(rosenbrock, [-1.2, 1.0], fails=lambda theta, number, tol: number == k)
    result = learn(toy, tol=1e-6)
    assert np.flatnonzero(~result.converged).tolist() == [k]
    assert k not in toy.accepted
    np.testing.assert_allclose(result.theta, 1, atol=0.02)


@pytest.mark.parametrize("spoil", ["value", "gradient", "infinite", "no gradient"])
def test_numbers_that_are_none(spoil):
    toy = PROBLEMS["quadratic"]()
    evaluate = toy.evaluate

    def spoiled(theta, tol, progress=None):
        evaluation = evaluate(theta, tol)
        if len(toy.calls) != 4:
            return evaluation
        wrong = {
            "value": {"value": math.nan},
            "infinite": {"value": -math.inf},
            "gradient": {"gradient": np.array([0.0, np.nan, 0.0])},
            "no gradient": {"gradient": None},
        }
        return replace(evaluation, **wrong[spoil])

    toy.evaluate = spoiled
    result = learn(toy)
    assert np.flatnonzero(~result.converged).tolist() == [3]
    assert result.status == "converged"
    np.testing.assert_allclose(result.theta, 1, atol=0.01)
    assert result.thetas.shape == (len(toy.calls), 3)
    assert len(result.gradient_norms) == len(toy.calls)


def test_start_that_fails_is_tried_once_more():
    toy = PROBLEMS["second try"]()
    result = learn(toy)
    assert [tol for _, tol in toy.calls[:3]] == [1e-3, 1e-2, 1e-2]
    assert result.converged.tolist()[:3] == [False, True, True]
    assert result.status == "converged"
    toy = PROBLEMS["failing"]()
    result = learn(toy)
    assert result.status == "failed"
    assert "choose others" in result.message
    assert len(toy.calls) == len(result.evaluations) == 2
    assert result.best is None
    np.testing.assert_array_equal(result.theta, [3.0])
    assert toy.accepted == []


def test_near_misses_loosen_the_tolerance():
    toy = PROBLEMS["quadratic"]()
    evaluate = toy.evaluate

    def coarse(theta, tol, progress=None):
        return replace(evaluate(theta, tol), gap=max(tol / 2, 6e-5), converged=tol > 6e-5)

    toy.evaluate = coarse
    result = learn(toy)
    assert result.status == "converged"
    np.testing.assert_allclose(result.theta, 1, atol=0.01)
    assert 1 <= np.count_nonzero(~result.converged) <= 3


def test_search_that_cannot_go_on():
    toy = PROBLEMS["stalling"]()
    result = learn(toy)
    assert result.status == "stalled"
    assert "evaluations failed" in result.message
    assert 2 <= result.theta[0] < 2.1  # at the wall
    assert len(toy.calls) < 50
    # A gradient of the wrong sign.
    result = learn(Toy(lambda theta: (quadratic(theta)[0], -quadratic(theta)[1]), [3.0, -2.0]))
    assert result.status == "stalled"
    assert "no lower value" in result.message
    assert result.best == 0


def test_tiny_gain_after_failures_is_no_convergence():
    def slope(theta):
        return 5 + 2e-3 * theta[0] + 0.0625 * theta[0] ** 2, 2e-3 + 0.125 * theta

    toy = Toy(slope, [0.0], fails=lambda theta, number, tol: 1 <= number <= 4)
    result = learn(toy, tol=1e-3)
    assert result.status == "stalled"
    assert result.converged.tolist() == [True, False, False, False, False, True]
    assert result.best == 5


@pytest.mark.parametrize("place", [-9.0, 4.0], ids=["failed", "higher"])
def test_bad_step_of_the_optimizer(place, monkeypatch):
    def careless(function, start, callback, **options):
        function(start)
        function(start + place)
        callback(start + place)
        raise AssertionError("the step must be refused")

    monkeypatch.setattr(_learning, "minimize", careless)
    result = learn(Toy(quadratic, [3.0], fails=lambda theta, number, tol: theta[0] < 0))
    assert (result.status, result.best) == ("stalled", 0)


def test_noise_does_not_keep_it_busy():
    toy = Toy(
        lambda x: (quadratic(x)[0] + 1e-6 * np.sin(1e7 * x.sum()), quadratic(x)[1] + 1e-3 * np.sin(1e5 * x)), [3.0] * 3
    )
    result = learn(toy, tol=1e-9)
    assert result.status in ("converged", "stalled")
    assert result.values[result.best] == pytest.approx(0.5, abs=1e-4)


@pytest.mark.parametrize("k", [1, 2, 7])
def test_ctrl_c_gives_the_best_so_far(k):
    toy = PROBLEMS["rosenbrock"](disturb=interrupt_at(k))
    result = learn(toy)
    assert result.status == "interrupted"
    assert "Ctrl-C" in result.message
    assert len(result.evaluations) == k
    assert result.values[result.best] == result.values.min()
    assert_same(replace(result, status="", message=""), replace(limited(k), status="", message=""))


def limited(k):
    return learn(PROBLEMS["rosenbrock"](), max_evaluations=k)


def test_ctrl_c_before_anything_is_there():
    with pytest.raises(KeyboardInterrupt):
        learn(PROBLEMS["quadratic"](disturb=interrupt_at(0)))


def test_other_errors_come_out():
    def disturb(number, progress):
        if number == 2:
            raise MemoryError("too large")

    with pytest.raises(MemoryError, match="too large"):
        learn(PROBLEMS["quadratic"](disturb=disturb))


@pytest.mark.parametrize("k", [1, 2, 5])
def test_max_evaluations(k):
    toy = PROBLEMS["quadratic"]()
    result = learn(toy, max_evaluations=k)
    assert result.status == "max_evaluations"
    assert f"max_evaluations={k}" in result.message
    assert len(toy.calls) == len(result.evaluations) == k
    whole = learn(PROBLEMS["quadratic"]())
    assert learn(PROBLEMS["quadratic"](), max_evaluations=len(whole.evaluations)).status == "converged"


@pytest.fixture
def clock(monkeypatch):
    """A clock that goes only when told."""

    class Clock:
        now = 100.0

        def perf_counter(self):
            return self.now

    clock = Clock()
    monkeypatch.setattr(_learning, "time", clock)
    return clock


def test_time_limit_between_evaluations(clock):
    def disturb(number, progress):
        clock.now += 10

    result = learn(PROBLEMS["quadratic"](disturb=disturb), time_limit=35)
    assert result.status == "time_limit"
    assert "time_limit=35" in result.message
    assert len(result.evaluations) == 4


def test_time_limit_inside_an_evaluation(clock):
    def disturb(number, progress):
        for iteration in range(10):
            clock.now += 1
            progress(iteration, iteration, 1.0, 0.1, 1.0)

    result = learn(PROBLEMS["quadratic"](disturb=disturb), time_limit=35)
    assert result.status == "time_limit"
    assert clock.now == 135
    assert len(result.evaluations) == 3
    result = learn(PROBLEMS["quadratic"](disturb=disturb), time_limit=5)
    assert (result.status, result.best, result.evaluations) == ("time_limit", None, ())
    np.testing.assert_array_equal(result.theta, [3, -2, 0])
    assert "time_limit" in repr(result)


def test_time_limit_is_of_this_run(clock, tmp_path):
    def disturb(number, progress):
        clock.now += 10

    lengths = []
    for _ in range(3):
        toy = PROBLEMS["rosenbrock"](disturb=disturb)
        lengths.append(len(learn(toy, time_limit=35, checkpoint=tmp_path / "c").evaluations))
    assert lengths == [4, 8, 12]


def test_bounds():
    toy = PROBLEMS["bounds"]()
    result = learn(toy)
    assert result.status == "converged"
    np.testing.assert_array_equal(result.theta, [2, 1])
    assert result.gradient_norms[result.best] < 1e-4
    assert np.abs(result.evaluations[result.best].gradient).max() > 1  # towards the outside
    for theta, _ in toy.calls:
        assert (toy.bounds[:, 0] <= theta).all()
        assert (theta <= toy.bounds[:, 1]).all()


def test_start_outside_of_the_bounds_and_held_parameters():
    result = learn(Toy(quadratic, [9.0, 0.25, 0.0], bounds=[[2, 5], [0.25, 0.25], [-np.inf, np.inf]]))
    np.testing.assert_array_equal(result.start, [5, 0.25, 0])
    np.testing.assert_allclose(result.theta, [2, 0.25, 1], atol=1e-3)
    result = learn(Toy(quadratic, [3.0], bounds=[[3, 3]]))
    assert (result.status, len(result.evaluations)) == ("converged", 1)


def test_no_parameters(tmp_path):
    toy = Toy(quadratic, [])
    result = learn(toy, checkpoint=tmp_path / "c")
    assert result.status == "no_parameters"
    assert toy.calls == []
    assert result.theta.shape == (0,)
    assert result.thetas.shape == (0, 0)
    assert result.values.shape == result.gradient_norms.shape == (0,)
    assert "no_parameters" in repr(result)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("name", PROBLEMS)
def test_goes_on_where_it_was(name, tmp_path):
    make = PROBLEMS[name]
    whole = learn(make())
    total = len(whole.evaluations)
    for k in range(0, total, 1 if total < 20 else 3):
        path = tmp_path / f"{k}"
        if k == 0:
            with pytest.raises(KeyboardInterrupt):
                learn(make(disturb=interrupt_at(0)), checkpoint=path)
        else:
            assert learn(make(disturb=interrupt_at(k)), checkpoint=path).status == "interrupted"
        toy = make()
        if name == "second try":  # it counts its calls from here
            toy.fails = lambda theta, number, tol: theta[0] == 3 and tol < 1e-2
        assert_same(learn(toy, checkpoint=path), whole)
        assert len(toy.calls) == total - k
        # The end is in the file too.
        toy = make()
        assert_same(learn(toy, checkpoint=str(path)), whole)
        assert toy.calls == []


def test_goes_on_step_by_step(tmp_path):
    whole = learn(PROBLEMS["wall"]())
    for k in range(1, len(whole.evaluations) + 1):
        toy = PROBLEMS["wall"]()
        result = learn(toy, checkpoint=tmp_path / "c", max_evaluations=k)
        assert len(toy.calls) == 1
    assert_same(result, whole)
    # As if it had been asked for less from the start.
    for k in range(1, len(whole.evaluations)):
        toy = PROBLEMS["wall"]()
        assert_same(
            learn(toy, checkpoint=tmp_path / "c", max_evaluations=k), learn(PROBLEMS["wall"](), max_evaluations=k)
        )
        assert toy.calls == []


def test_wrong_inner_state_would_be_noticed(tmp_path):
    """The test of the tests above: without the state, the numbers differ."""
    whole = learn(PROBLEMS["rosenbrock"]())
    learn(PROBLEMS["rosenbrock"](), checkpoint=tmp_path / "c", max_evaluations=5)
    toy = PROBLEMS["rosenbrock"]()
    toy.set_state = lambda state: None
    with pytest.raises(AssertionError):
        assert_same(learn(toy, checkpoint=tmp_path / "c"), whole)


def test_other_optimizer_goes_on_from_the_best_point(tmp_path, monkeypatch):
    first = learn(PROBLEMS["rosenbrock"](), checkpoint=tmp_path / "c", max_evaluations=20)
    minimize = _learning.minimize

    def other(*arguments, options, **others):
        return minimize(*arguments, options={**options, "maxcor": 1}, **others)

    monkeypatch.setattr(_learning, "minimize", other)
    toy = PROBLEMS["rosenbrock"]()
    result = learn(toy, checkpoint=tmp_path / "c", tol=1e-6, max_evaluations=200)
    assert "another version of scipy" in result.message
    assert len(toy.calls) == len(result.evaluations) - 20
    for one, recorded in zip(result.evaluations, first.evaluations, strict=False):
        assert one.theta.tobytes() == recorded.theta.tobytes()
    # It begins at the best point, by a step of length one along the gradient, and does not evaluate it again.
    step = toy.calls[0][0] - first.theta
    gradient = first.evaluations[first.best].gradient
    np.testing.assert_allclose(step, -gradient / np.linalg.norm(gradient), atol=1e-9)
    np.testing.assert_allclose(result.theta, 1, atol=0.02)


def test_other_optimizer_after_a_bad_step(tmp_path, monkeypatch):
    first = learn(PROBLEMS["rosenbrock"](), checkpoint=tmp_path / "c", max_evaluations=2)
    assert first.best == 0
    minimize = _learning.minimize

    def other(function, *arguments, **options):
        return minimize(lambda x: tuple(0.5 * part for part in function(x)), *arguments, **options)

    monkeypatch.setattr(_learning, "minimize", other)
    result = learn(PROBLEMS["rosenbrock"](), checkpoint=tmp_path / "c")
    assert result.status == "converged"
    assert "another version of scipy" in result.message


def test_checkpoint_of_another_problem(tmp_path):
    path = tmp_path / "c"
    learn(PROBLEMS["quadratic"](), checkpoint=path, fingerprint="one", max_evaluations=3)
    content = path.read_bytes()
    for toy, fingerprint in ((PROBLEMS["quadratic"](), "two"), (PROBLEMS["rosenbrock"](), "one")):
        with pytest.raises(ValueError, match=r"another problem.*; delete it or choose another path"):
            learn(toy, checkpoint=path, fingerprint=fingerprint)
        assert toy.calls == []
    assert path.read_bytes() == content
    path.write_bytes(content[:-1])
    with pytest.raises(ValueError, match=re.escape(str(path))):
        learn(PROBLEMS["quadratic"](), checkpoint=path, fingerprint="one")


def test_checkpoint_that_cannot_be_written(tmp_path):
    toy = PROBLEMS["quadratic"]()
    with pytest.raises(FileNotFoundError, match="cannot write"):
        learn(toy, checkpoint=tmp_path / "nowhere" / "c")
    with pytest.raises(ValueError, match="choose another path"):
        learn(toy, checkpoint=tmp_path)
    assert toy.calls == []


KILLED = """
    import os, signal, sys, time
    import numpy as np
    sys.path.insert(0, sys.argv[1])
    from toy_objectives import Toy, rosenbrock
    from taxolearn.tuning.search import learn

    begin = time.perf_counter()
    learn(Toy(rosenbrock, [-1.2, 1.0], seconds=0.005), checkpoint=sys.argv[2] + "0", max_evaluations=4)
    duration = (time.perf_counter() - begin) / 4
    os.remove(sys.argv[2] + "0")
    generator = np.random.default_rng(0)
    for _ in range(10):
        child = os.fork()
        if child == 0:
            learn(Toy(rosenbrock, [-1.2, 1.0], seconds=0.005), checkpoint=sys.argv[2])
            os._exit(0)
        time.sleep(generator.uniform(0, 8 * duration))
        os.kill(child, signal.SIGKILL)
        os.waitpid(child, 0)
    toy = Toy(rosenbrock, [-1.2, 1.0])
    result = learn(toy, checkpoint=sys.argv[2])
    print(len(toy.calls) < len(result.evaluations))
    print(result.status, [x.hex() for x in result.theta], len(result.evaluations))
"""


def test_killed_runs_end_up_the_same(tmp_path, run_python):
    whole = learn(PROBLEMS["rosenbrock"]())
    done = run_python(KILLED, HERE, tmp_path / "c")
    expected = f"{whole.status} {[x.hex() for x in whole.theta]} {len(whole.evaluations)}"
    assert done.stdout.splitlines() == ["True", expected], done.stderr
    assert [path.name for path in tmp_path.iterdir()] == ["c"]


def test_result_in_words_and_numbers():
    result = learn(PROBLEMS["wall"]())
    lines = repr(result).splitlines()
    assert lines[0].startswith(f"LearningResult: converged, {len(result.evaluations)} evaluations (")
    assert lines[1] == result.message
    (row,) = (line.split() for line in lines if line.startswith("kernels[0].variance"))
    np.testing.assert_allclose([float(number) for number in row[1:]], np.exp([-1.2, result.theta[0]]), rtol=1e-5)
    many = repr(learn(Toy(quadratic, [0.9] * 40, bounds=[[0.5, 2]] * 40), max_evaluations=3))
    assert len(many.splitlines()) == 16
    assert many.endswith("and 30 parameters more")
    content = json.loads(json.dumps(result.to_dict()))
    assert content["status"] == "converged"
    np.testing.assert_array_equal(content["values"], result.values)
    np.testing.assert_array_equal(content["thetas"], result.thetas)
    assert content["converged"] == result.converged.tolist()
    assert content["names"] == list(result.names)


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"tol": -1}, ValueError, "tol must be finite and at least 0"),
        ({"tol": "small"}, TypeError, "tol must be a number"),
        ({"max_evaluations": 0}, ValueError, "max_evaluations"),
        ({"max_evaluations": 2.5}, TypeError, "max_evaluations must be an integer"),
        ({"time_limit": math.nan}, ValueError, "time_limit"),
    ],
)
def test_bad_arguments(options, error, message):
    toy = PROBLEMS["quadratic"]()
    with pytest.raises(error, match=message):
        learn(toy, **options)
    assert toy.calls == []


def test_progress_of_each_new_evaluation(tmp_path):
    seen = []
    options = {"checkpoint": tmp_path / "c", "progress": lambda *arguments: seen.append(arguments)}
    learn(PROBLEMS["wall"](), max_evaluations=5, **options)
    result = learn(PROBLEMS["wall"](), **options)
    numbers, values, bests, norms, seconds = map(np.array, zip(*seen, strict=True))
    np.testing.assert_array_equal(numbers, 1 + np.arange(len(result.evaluations)))
    good = np.where(result.converged, result.values, np.nan)
    np.testing.assert_array_equal(values, good)
    np.testing.assert_array_equal(bests, np.fmin.accumulate(good))
    assert norms[-1] == result.gradient_norms[result.best]
    assert (np.diff(seconds[5:]) >= 0).all()


def test_time_left():
    budget = _Budget(1e-4, 100, None)
    assert budget.seconds_left(1, 1.0, 10.0) == math.inf
    # From 1 to 0.1 in 20 seconds: three more of these.
    assert budget.seconds_left(3, 0.1, 30.0) == pytest.approx(60)
    # The gradient rose: only the number of evaluations is known.
    assert budget.seconds_left(5, 2.0, 50.0) == pytest.approx(10 * 95)
    assert budget.seconds_left(100, 2.0, 1000.0) == 0
    assert _Budget(1e-4, 100, 60.0).seconds_left(1, 1.0, 10.0) == 50
    assert _Budget(0.0, 100, None).seconds_left(1, math.nan, 10.0) == math.inf


def test_a_line_per_evaluation(capsys):
    with learning_progress(2, 1e-4, 100, None) as progress:
        result = learn(PROBLEMS["wall"](), progress=progress)
    lines = capsys.readouterr().err.splitlines()
    assert len(lines) == len(result.evaluations)
    pattern = (
        r"evaluation +(\d+)  mean log loss +(failed|\d+\.\d+)  best \d\.\d+  gradient \d\.\d\de[-+]\d\d  \d+\.\d\d s"
    )
    found = [re.fullmatch(pattern, line) for line in lines]
    assert [int(match[1]) for match in found] == list(range(1, len(lines) + 1))
    assert [match[2] != "failed" for match in found] == result.converged.tolist()


def test_no_progress_away_from_a_terminal():
    for verbose in (0, 1):
        with learning_progress(verbose, 1e-4, 100, None) as progress:
            assert progress is None


TERMINAL = """
    import sys
    sys.path.insert(0, sys.argv[1])
    from toy_objectives import Toy, rosenbrock
    from taxolearn.tuning.search import learn
    from taxolearn.progress import learning_progress
    with learning_progress(int(sys.argv[2]), 1e-4, 100, None) as progress:
        learn(Toy(rosenbrock, [-1.2, 1.0], seconds=0.01), progress=progress)
"""


def test_bar_on_a_terminal():
    shown = on_a_terminal(TERMINAL, HERE, 1)
    assert "learning" in shown
    assert "mean log loss 0." in shown
    assert re.search(r"evaluation \d+", shown)
    assert re.search(r"about \d+ s left", shown)
    assert on_a_terminal(TERMINAL, HERE, 0) == ""
