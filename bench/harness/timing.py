"""Timing of several competitors in turns, so that a disturbance of the machine affects all of them alike."""

import statistics
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass
from typing import Any


@dataclass(frozen=True)
class Timing:
    """Wall-clock seconds of the repeats."""

    median: float
    least: float
    most: float
    repeats: int

    def as_dict(self) -> dict[str, Any]:
        return {"seconds": self.median} | {key: value for key, value in asdict(self).items() if key != "median"}


def interleave(
    work: Mapping[str, Callable[[], Any]], repeats: int, least_seconds: float = 0.0, pause: float = 0.0
) -> tuple[dict[str, Timing], dict[str, Any]]:
    """Run every piece of work in turns; return times and last answers by name.

    There are ``repeats`` rounds, and more, up to a hundred, until the rounds have taken ``least_seconds`` together.
    The ``pause`` before each piece of work lets the threads of the last one, which may spin for a while, leave the
    cores.
    """
    seconds: dict[str, list[float]] = {name: [] for name in work}
    answers: dict[str, Any] = {}
    begin = time.perf_counter()
    rounds = 0
    while rounds < repeats or (rounds < 100 and time.perf_counter() - begin < least_seconds):
        rounds += 1
        for name, run in work.items():
            answers.pop(name, None)
            time.sleep(pause)
            start = time.perf_counter()
            answers[name] = run()
            seconds[name].append(time.perf_counter() - start)
    times = {name: Timing(statistics.median(s), min(s), max(s), len(s)) for name, s in seconds.items()}
    return times, answers
