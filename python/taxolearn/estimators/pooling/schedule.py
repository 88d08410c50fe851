"""How long a pool will still take, as far as that is known, and telling the user about it."""

from __future__ import annotations

import time

import numpy as np

from taxolearn.progress import Stages

__all__ = ["Schedule"]

_NEXT = 1.2  # how much longer the next expert of the same kind takes
_TELLING = 0.2  # share of the work on an expert, from which on the time it took tells how long the rest will take


class Schedule:
    """The experts that are tried one after the other, and their last fits.

    Parameters
    ----------
    stages : Stages
        Where progress is shown.
    alike : list of bool
        For each expert, in the order of their turns, whether it is one of those that take about the same time.
    """

    def __init__(self, stages: Stages, alike: list[bool]) -> None:
        self._stages = stages
        self._alike = alike
        self._turn = -1
        self._begin = time.perf_counter()
        self._share = 0.0
        self._like = np.nan  # seconds of the last expert that is like others
        self._final = 0.0  # seconds of the last fits
        self._place = ""
        self._best = np.inf

    def line(self, text: str) -> None:
        """Tell something that is over."""
        self._stages.line(text)

    def begin(self, name: str) -> None:
        """It is the turn of the next expert."""
        self._turn += 1
        self._begin, self._share = time.perf_counter(), 0.0
        self._place = f"trying {name} ({self._turn + 1} of {len(self._alike)})"
        self._show()

    def advance(self, before: float, share: float, loss: float) -> None:
        """Of the work on this expert a part was done before, and now a share of the rest; with the log loss of it."""
        self._share = before + (1 - before) * share
        self._best = min(self._best, loss)
        self._show()

    def finish(self, loss: float, fit_seconds: float) -> None:
        """The expert was tried: its log loss, and how long its last fit will take."""
        if self._alike[self._turn]:
            self._like = time.perf_counter() - self._begin
        self._final += fit_seconds
        self.advance(0.0, 1.0, loss)

    def left(self) -> tuple[float, bool]:
        """Seconds that are left until the end, NaN if nothing is known; and whether it may be far more."""
        is_alike, rest = self._alike[self._turn], self._alike[self._turn + 1 :]
        own = (time.perf_counter() - self._begin) / self._share if self._share >= _TELLING else np.nan
        like = own if is_alike and np.isfinite(own) else self._like
        seconds = [self._final, own * (1 - self._share), *(_NEXT * like if each else np.nan for each in rest)]
        total = float(np.nansum(seconds))
        return (total if total > 0 else np.nan), bool(np.isnan(seconds).any())

    def _show(self) -> None:
        known = "" if np.isinf(self._best) else f", log loss {self._best:.4f} so far"
        self._stages.update(self._place + known, *self.left())
