"""A kernel for every block of the inputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from taxolearn import _core
from taxolearn.blocks import Blocks
from taxolearn.kernels.base import Kernel, Parameter, Sum
from taxolearn.kernels.inner_product import Linear

__all__ = ["PerBlock"]


@dataclass(frozen=True, repr=False, init=False)
class PerBlock(Sum):
    """The sum of one kernel per block: ``PerBlock({"words": Linear(), "embedding": RBF()})`` reads ``Blocks``.

    An estimator makes one of a mapping from names of blocks to kernels, and of any other kernel, which it gives to
    every block.

    Parameters
    ----------
    kernels : mapping from names of blocks to kernels
        One for every block.

    Examples
    --------
    >>> from taxolearn.kernels import RBF, Linear, PerBlock
    >>> PerBlock({"words": Linear(), "embedding": RBF(2.0)}).parameter_names
    ('words.variance', 'embedding.length_scale', 'embedding.variance')
    """

    names: tuple[str, ...] = field(default=())

    reads_blocks = True

    def __init__(self, kernels: Mapping[str, Kernel]) -> None:
        if not isinstance(kernels, Mapping):
            raise TypeError(f'PerBlock: kernels must be a mapping like {{"words": Linear()}}, got {kernels!r}')
        if not kernels:
            raise ValueError("PerBlock: the mapping is empty, expected a kernel for every block")
        for name, kernel in kernels.items():
            if not isinstance(kernel, Kernel):
                raise TypeError(f"PerBlock[{name!r}] must be a kernel, got {kernel!r}")
            if kernel.reads_blocks or kernel.is_precomputed or not kernel.is_native:
                raise ValueError(
                    f"PerBlock[{name!r}] is {kernel!r}; a block needs a kernel of taxolearn that reads features, not a "
                    "Function, Precomputed or PerBlock"
                )
        object.__setattr__(self, "names", tuple(kernels))
        object.__setattr__(self, "parts", tuple(kernels.values()))

    def __getitem__(self, name: str) -> Kernel:
        """The kernel of a block."""
        return self._own_params()[name]  # type: ignore[no-any-return]

    @property
    def linear_blocks(self) -> tuple[str, ...]:
        """Names of the blocks whose kernel is linear."""
        return tuple(name for name, part in zip(self.names, self.parts, strict=True) if isinstance(part, Linear))

    def in_order(self, names: Sequence[str]) -> PerBlock:
        """The same with its blocks in this order; the kernel itself, if they are others."""
        return PerBlock({name: self[name] for name in names}) if set(names) == set(self.names) else self

    def __repr__(self) -> str:
        return f"PerBlock({self._own_params()!r})"

    def _own_params(self) -> dict[str, Any]:
        return dict(zip(self.names, self.parts, strict=True))

    def _of_params(self, params: dict[str, Any]) -> Any:
        return PerBlock(params)

    def with_parts(self, parts: Sequence[Kernel]) -> Kernel:
        return PerBlock(dict(zip(self.names, parts, strict=True)))

    def to_core(self) -> _core.Kernel:
        return _core.BlockKernel([part.to_core() for part in self.parts])

    def check_reads(self, X: Any) -> None:
        if not isinstance(X, Blocks):
            raise TypeError(f"{self!r} reads taxolearn.Blocks, got {type(X).__name__}")
        if X.names != self.names:
            raise ValueError(
                f"X has the blocks {', '.join(map(repr, X.names))}, but there are kernels for "
                f"{', '.join(map(repr, self.names))}; expected the same names in the same order"
            )
        for part, matrix in zip(self.parts, X.matrices, strict=True):
            part.check_reads(matrix)

    def parameters(self) -> list[Parameter]:
        return [
            p._replace(name=f"{name}.{p.name}")
            for name, part in zip(self.names, self.parts, strict=True)
            for p in part.parameters()
        ]
