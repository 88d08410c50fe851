"""A tree as text and as a figure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from taxolearn.taxonomy.nodes import Integers, Name
    from taxolearn.taxonomy.tree import Taxonomy

_LONGEST_NAME = 60
_BAR = 12
_DEEPEST = 20
_ASCII = str.maketrans("├└│─█·", "|`|-#.")
_INNER, _LEAF = "#1f4e79", "#e07b39"


def text_of(
    taxonomy: Taxonomy,
    *,
    max_lines: int,
    max_children: int | None,
    values: npt.ArrayLike | None,
    least: float | None,
    notes: Mapping[Name, str] | None,
    ascii_only: bool,
) -> str:
    """The tree in box-drawing characters, level by level as far as the lines go."""
    for argument, value, smallest in (("max_lines", max_lines, 3), ("max_children", max_children, 1)):
        if value is not None and value < smallest:
            raise ValueError(f"{argument} is {value}, expected at least {smallest}")
    numbers = None if values is None else _check_values(taxonomy, values)
    note_of = {} if not notes else dict(zip(taxonomy._find(list(notes), "notes").tolist(), notes.values(), strict=True))
    kept = _kept(taxonomy, numbers, least, list(note_of))
    chosen = _choose(taxonomy, kept, max_lines, max_children, numbers)
    spell = _in_ascii if ascii_only else str
    lines: list[tuple[str, int]] = []  # text and node; -1 for those that stand for several
    stack = [(0, "", "")]
    while stack:
        node, lead, below = stack.pop()
        if node < 0:
            lines.append((spell(f"{lead}{_left_out(taxonomy, kept, chosen, -node - 1)}"), -1))
            continue
        shown = chosen.get(node, [])
        summary = f" ({_count(taxonomy, node)})" if node < taxonomy.n_inner and not shown else ""
        lines.append((spell(f"{lead}{_label(taxonomy, node)}{summary}"), node))
        entries = shown if _is_complete(taxonomy, kept, node, shown) else [*shown, -node - 1]
        for i, child in reversed(list(enumerate(entries))):
            last = i == len(entries) - 1
            stack.append((child, below + ("└── " if last else "├── "), below + ("    " if last else "│   ")))
    if numbers is not None:
        width = max(len(text) for text, _ in lines)
        lines = [(text if node < 0 else f"{text:{width}}  {spell(_bar(numbers, node))}", node) for text, node in lines]
    return "\n".join(f"{text}  {spell(note_of[node])}" if node in note_of else text for text, node in lines)


def _in_ascii(text: str) -> str:
    return text.translate(_ASCII).encode("ascii", "backslashreplace").decode()


def _check_values(taxonomy: Taxonomy, values: npt.ArrayLike) -> npt.NDArray[np.float64]:
    numbers = np.asarray(values, dtype=np.float64)
    if numbers.shape != (taxonomy.n_nodes,):
        raise ValueError(f"values has shape {numbers.shape}, expected ({taxonomy.n_nodes},), one for each node")
    return numbers


def _kept(
    taxonomy: Taxonomy, numbers: npt.NDArray[np.float64] | None, least: float | None, noted: list[int]
) -> npt.NDArray[np.bool_]:
    """Which nodes are not of too small a value, or have a note, or have a node with a note below them."""
    if least is None:
        return np.ones(taxonomy.n_nodes, dtype=bool)
    if numbers is None:
        raise ValueError(f"least is {least}, but there are no values to compare with it; give values too")
    kept: npt.NDArray[np.bool_] = ~(numbers < least)
    for node in noted:
        while node >= 0:
            kept[node] = True
            node = int(taxonomy.parents[node])
    return kept


def _children(taxonomy: Taxonomy, kept: npt.NDArray[np.bool_], node: int) -> list[int]:
    """Numbers of the children that are kept as the walk meets them: leaves first."""
    children = np.flatnonzero((taxonomy.parents == node) & kept).tolist()
    return sorted(children, key=lambda child: (child < taxonomy.n_inner, child))


def _choose(
    taxonomy: Taxonomy,
    kept: npt.NDArray[np.bool_],
    max_lines: int,
    max_children: int | None,
    numbers: npt.NDArray[np.float64] | None,
) -> dict[int, list[int]]:
    """The children to show of each node, in at most so many lines.

    Each level shares out what the levels above it leave over. All its nodes get the same number of lines, of which
    the last one says what is left out; those who need less take less. If that would be less than three, the first
    nodes get three each. A level that has another one below it takes no more than half.
    """
    chosen: dict[int, list[int]] = {}
    left = max_lines - 1
    level = [0]
    while level and left > 0:
        children = {node: _children(taxonomy, kept, node) for node in level[:max_lines]}
        most = left if max_children is None else min(left, max_children + 1)
        is_last = all(child >= taxonomy.n_inner for below in children.values() for child in below)
        budget = left if is_last else max(left // 2, min(left, 3))
        share = _even_share([len(below) for below in children.values()], budget, most)
        next_level = []
        for node, below in children.items():
            fits = len(below) <= (share if max_children is None else min(share, max_children))
            if min(share, len(below)) > left or (not fits and share < 2):
                continue
            chosen[node] = below if fits else _select(taxonomy, below, share - 1, numbers)
            left -= len(chosen[node]) + (not fits)
            next_level += [child for child in chosen[node] if child < taxonomy.n_inner]
        level = next_level
    return chosen


def _even_share(wanted: list[int], budget: int, most: int) -> int:
    """The largest number of lines that all can have within the budget, at least three."""
    share = most
    while share > 3 and sum(min(share, number) for number in wanted) > budget:
        share -= 1
    return share


def _select(taxonomy: Taxonomy, children: list[int], number: int, numbers: npt.NDArray[np.float64] | None) -> list[int]:
    """So many of the children: those of largest value, or the first ones with about as many inner nodes as leaves."""
    if numbers is not None:
        largest = sorted(children, key=lambda child: -numbers[child])[:number]
        return [child for child in children if child in set(largest)]
    leaves = [child for child in children if child >= taxonomy.n_inner]
    inner = [child for child in children if child < taxonomy.n_inner]
    n_inner = min(len(inner), max(number - len(leaves), (number + 1) // 2))
    return leaves[: number - n_inner] + inner[:n_inner]


def _is_complete(taxonomy: Taxonomy, kept: npt.NDArray[np.bool_], node: int, shown: list[int]) -> bool:
    return not shown or len(shown) == int(((taxonomy.parents == node) & kept).sum())


def _left_out(taxonomy: Taxonomy, kept: npt.NDArray[np.bool_], chosen: dict[int, list[int]], node: int) -> str:
    hidden = sorted(set(_children(taxonomy, kept, node)) - set(chosen[node]))
    n_classes = int((taxonomy.leaf_end[hidden] - taxonomy.leaf_begin[hidden]).sum())
    return f"... {len(hidden)} more" + (f" ({n_classes} classes)" if n_classes > len(hidden) else "")


def _count(taxonomy: Taxonomy, node: int) -> str:
    number = int(taxonomy.leaf_end[node] - taxonomy.leaf_begin[node])
    return f"{number} class{'es' * (number != 1)}"


def _label(taxonomy: Taxonomy, node: int, longest: int = _LONGEST_NAME) -> str:
    text = "".join(character if character.isprintable() else " " for character in str(taxonomy.names[node]))
    return text if len(text) <= longest else text[: longest - 3] + "..."


def _bar(numbers: npt.NDArray[np.float64], node: int) -> str:
    value = float(numbers[node])
    finite = np.abs(numbers[np.isfinite(numbers)])
    largest = finite.max() if finite.size > 0 else 0.0
    length = round(_BAR * abs(value) / largest) if largest > 0 and np.isfinite(value) else 0
    is_share = bool((numbers >= 0).all() and (numbers <= 1 + 1e-9).all())
    return f"{'█' * length}{'·' * (_BAR - length)} {f'{100 * value:5.1f} %' if is_share else f'{value:.4g}'}"


# -- Figure -----------------------------------------------------------------------------------------------------------


def plot_tree(
    taxonomy: Taxonomy,
    ax: Any,
    *,
    max_leaves: int,
    values: npt.ArrayLike | None = None,
    cmap: str = "viridis",
    more_edges: Integers | None = None,
) -> Any:
    """The tree from left to right, one row for each leaf that is drawn; more edges between its nodes as thin lines."""
    try:
        from matplotlib import pyplot as plt
        from matplotlib.collections import LineCollection
    except ImportError as error:
        raise ImportError("plot needs the package matplotlib: pip install matplotlib") from error
    if max_leaves < 1:
        raise ValueError(f"max_leaves is {max_leaves}, expected at least 1")
    numbers = None if values is None else _check_values(taxonomy, values)
    nodes, ends, note = _drawn(taxonomy, max_leaves)
    rows = _rows(taxonomy, nodes, ends)
    depths = taxonomy.depths[nodes]
    width = int(depths.max())
    if ax is None:
        size = (2.2 * (width + 1.3), 0.6 + 0.19 * max(len(ends), 4))
        ax = plt.figure(figsize=size, layout="constrained").add_subplot()
    edges = [
        [(x - 1, rows[int(taxonomy.parents[node])]), (x - 0.88, rows[node]), (x, rows[node])]
        for node, x in zip(nodes[1:], depths[1:].tolist(), strict=True)
    ]
    ax.add_collection(LineCollection(edges, colors="0.7", linewidths=0.9, zorder=1))
    pairs = [] if more_edges is None else [pair for pair in more_edges.tolist() if rows.keys() >= set(pair)]
    lines = [[(int(taxonomy.depths[node]), rows[node]) for node in pair] for pair in pairs]
    ax.add_collection(LineCollection(lines, colors=_LEAF, linewidths=0.6, linestyles="dashed", zorder=1))
    colours: dict[str, Any] = {"c": [_INNER if node < taxonomy.n_inner else _LEAF for node in nodes]}
    if numbers is not None:
        below = numbers[nodes[1:]]  # the root's value is often the sum of all others
        colours = {"c": numbers[nodes], "cmap": cmap, "vmin": np.nanmin(below), "vmax": np.nanmax(below)}
    size_of_points = 14 if numbers is None else 36
    points = ax.scatter(depths, [rows[node] for node in nodes], s=size_of_points, zorder=2, linewidths=0, **colours)
    if numbers is not None:
        ax.figure.colorbar(points, ax=ax, fraction=0.03, pad=0.01)
    for node, x in zip(nodes, depths.tolist(), strict=True):
        _annotate(taxonomy, ax, node, (x, rows[node]), is_end=node in ends)
    ax.set_xlim(-0.6, width + 0.7)
    ax.set_ylim(max(rows.values()) + 0.8, -0.8)
    ax.set_axis_off()
    ax.set_title(note, fontsize=9, loc="left")
    return ax


def _annotate(taxonomy: Taxonomy, ax: Any, node: int, point: tuple[int, float], *, is_end: bool) -> None:
    """The name of an end to its right, of the root to its left, of another inner node above the line to it."""
    text = _label(taxonomy, node, 45 if is_end else 30)
    if is_end and node < taxonomy.n_inner:
        text += f" ({_count(taxonomy, node)})"
    if is_end:
        style: dict[str, Any] = {"xytext": (5, 0), "va": "center", "ha": "left"}
    elif node == 0:
        style = {"xytext": (-5, 0), "va": "center", "ha": "right", "fontweight": "bold", "color": _INNER}
    else:
        style = {"xytext": (-2, 1), "va": "bottom", "ha": "right", "fontweight": "bold", "color": _INNER}
    text = text.replace("$", r"\$")  # no mathematics
    ax.annotate(text, point, textcoords="offset points", fontsize=7.5, zorder=3, **style)


def _drawn(taxonomy: Taxonomy, max_leaves: int) -> tuple[list[int], set[int], str]:
    """The nodes to draw, those of them below which nothing is drawn, and a line that says what is left out."""
    depths = taxonomy.depths
    is_leaf = np.arange(taxonomy.n_nodes) >= taxonomy.n_inner
    # Drawn down to some depth, the tree ends in its leaves above and in all nodes at that depth.
    n_ends = np.cumsum(np.bincount(depths[is_leaf], minlength=taxonomy.height + 1))
    n_ends += np.bincount(depths[~is_leaf], minlength=taxonomy.height + 1)
    fitting = np.flatnonzero(n_ends <= max_leaves)
    depth = min(max(int(fitting.max()), 1), _DEEPEST)
    nodes = np.flatnonzero(depths <= depth)
    ends = nodes[is_leaf[nodes] | (depths[nodes] == depth)]
    note = f"{taxonomy.n_classes} class{'es' * (taxonomy.n_classes != 1)}"
    if depth < taxonomy.height:
        note += f", drawn down to depth {depth} of {taxonomy.height}"
    if len(ends) > max_leaves:
        note += f", the first {max_leaves} of {len(ends)} nodes below the root"
        ends = ends[np.argsort(taxonomy.leaf_begin[ends])][:max_leaves]
        nodes = np.concatenate([[0], np.sort(ends)])
    return nodes.tolist(), set(ends.tolist()), note


def _rows(taxonomy: Taxonomy, nodes: list[int], ends: set[int]) -> dict[int, float]:
    """Ends one below the other, as the walk meets them; other nodes in the middle of their children."""
    ordered = sorted(ends, key=lambda end: int(taxonomy.leaf_begin[end]))
    rows = {end: float(row) for row, end in enumerate(ordered)}
    children: dict[int, list[float]] = {}
    inner = [node for node in nodes if node not in ends]
    for node in [*ends, *reversed(inner)]:
        if node not in ends:
            rows[node] = (min(children[node]) + max(children[node])) / 2
        children.setdefault(int(taxonomy.parents[node]), []).append(rows[node])
    return rows
