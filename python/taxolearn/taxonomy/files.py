"""Files that hold a tree: paths, edges, adjacency lists, Newick and JSON."""

import json
import re
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from os import PathLike
from pathlib import Path
from typing import Any, NamedTuple, NoReturn

from taxolearn.raw_files import read_text
from taxolearn.taxonomy.nodes import Name, Nodes, nodes_from_edges, nodes_from_paths, shown

_NEWICK_SUFFIXES = (".nwk", ".newick", ".tre", ".nh")
_INTEGER = re.compile(r"0|-?[1-9][0-9]{0,18}")
_NEWICK_TOKEN = re.compile(
    r"\s+|(?P<comment>\[[^\]]*\])|(?P<sign>[(),:;])|'(?P<quoted>(?:[^']|'')*)'|(?P<plain>[^\s()\[\]',:;]+)"
)


class Table(NamedTuple):
    """The columns of the lines that are not empty, and where these lines are."""

    file: str
    rows: list[list[Name]]
    lines: list[int]

    def place(self, row: int) -> str:
        return f"{self.file}, line {self.lines[row]}"


def read_nodes(path: str | PathLike[str], *, format: str | None, encoding: str) -> Nodes:  # noqa: A002
    """The tree in a file, in the given format or the one that it seems to have."""
    if format is not None and (not isinstance(format, str) or format not in FORMATS):
        raise ValueError(f"format is {format!r}, expected None or one of {', '.join(map(repr, FORMATS))}")
    file = str(path)
    text = read_text(Path(path), encoding)
    if not text.strip():
        raise ValueError(f"{file} is empty")
    if format is None:
        format = _format_by_name_or_start(file, text)  # noqa: A001
    try:
        return FORMATS[format](file, text) if format is not None else _guess(file, text)
    except ValueError as error:
        if str(error).startswith(file):
            raise
        raise ValueError(f"{file}: {error}") from None


def _format_by_name_or_start(file: str, text: str) -> str | None:
    suffix = Path(file.removesuffix(".gz")).suffix.lower()
    start, end = text.lstrip()[0], text.rstrip()[-1]
    if suffix == ".json" or start in "{[":
        return "json"
    if suffix in _NEWICK_SUFFIXES or (start == "(" and end == ";"):
        return "newick"
    return None


def _as_integers(names: Sequence[Name]) -> dict[Name, Name]:
    """What each name becomes: an integer if all of them are, else a string."""
    distinct = set(names)
    if all(_INTEGER.fullmatch(str(name)) and -(2**63) <= int(name) < 2**63 for name in distinct):
        return {name: int(name) for name in distinct}
    return {name: str(name) for name in distinct}


# -- Lines and columns ------------------------------------------------------------------------------------------------


def _table(file: str, text: str) -> Table:
    separator = "\t" if "\t" in text else None
    rows: list[list[Name]] = []
    lines = []
    # Only line ends end a line: str.splitlines would also break names at rarer characters.
    for number, line in enumerate(re.split(r"\r\n|\n|\r", text), start=1):
        if not line.strip():
            continue
        columns = [column.strip() for column in line.rstrip().split(separator)]
        if "" in columns:
            raise ValueError(f"{file}, line {number} has an empty column: {line!r}")
        rows.append(list(columns))
        lines.append(number)
    becomes = _as_integers([name for row in rows for name in row])
    return Table(file, [[becomes[name] for name in row] for row in rows], lines)


def _read_paths(table: Table) -> Nodes:
    rows = table.rows
    if all(len(row) > 1 and row[0] == rows[0][0] for row in rows):
        return nodes_from_paths((row[1:] for row in rows), separator=None, root=rows[0][0], place=table.place)
    known = {name for row in rows for name in row}
    root = next(name for name in _root_names() if name not in known)
    return nodes_from_paths(rows, separator=None, root=root, place=table.place)


def _root_names() -> Iterator[str]:
    yield "root"
    number = 2
    while True:
        yield f"root {number}"
        number += 1


def _read_edges(table: Table) -> Nodes:
    for i, row in enumerate(table.rows):
        if len(row) != 2:
            raise ValueError(
                f"{table.place(i)} has {len(row)} column{'s' * (len(row) != 1)}, expected a parent and a child: "
                f"{shown(row)}"
            )
    return nodes_from_edges(table.rows, root=None, place=table.place)


def _read_adjacency(table: Table, *, one_line_each: bool = False) -> Nodes:
    edges = []
    row_of_edge = []
    first: dict[Name, int] = {}
    for i, (parent, *children) in enumerate(table.rows):
        if first.setdefault(parent, i) != i and one_line_each:
            raise ValueError(f"{table.place(i)}: {parent!r} begins a line for the second time")
        edges += [(parent, child) for child in children]
        row_of_edge += [i] * len(children)
    met = {name for edge in edges for name in edge}
    for name, i in first.items():
        if name not in met:
            raise ValueError(f"{table.place(i)}: {name!r} has neither a parent nor children")
    return nodes_from_edges(edges, root=None, place=lambda k: table.place(row_of_edge[k]))


def _guess(file: str, text: str) -> Nodes:
    """The tree on which all readings agree that give one."""
    table = _table(file, text)
    readings: dict[str, Callable[[], Nodes]] = {
        "paths": lambda: _read_paths(table),
        "edges": lambda: _read_edges(table),
        "adjacency": lambda: _read_adjacency(table, one_line_each=True),
    }
    found: dict[str, Nodes] = {}
    reasons = []
    for name, read in readings.items():
        try:
            found[name] = read()
        except ValueError as error:  # noqa: PERF203
            reasons.append(f"  as {name}: {error}")
    if not found:
        raise ValueError(f"{file} is no tree in any format; pass format= to choose one\n" + "\n".join(reasons))
    trees = [_parent_of(nodes) for nodes in found.values()]
    if any(tree != trees[0] for tree in trees[1:]):
        raise ValueError(f"{file} gives different trees when read as {' or as '.join(found)}; pass format= to choose")
    firsts = {row[0] for row in table.rows}
    if len(firsts) == len(table.rows) > 1 and max(map(len, table.rows)) > 2 and "adjacency" not in found:
        raise ValueError(
            f"{file} may hold a path on each line, or a parent and its children, as no two lines begin alike; "
            "pass format='paths' or format='adjacency'"
        )
    return next(iter(found.values()))


def _parent_of(nodes: Nodes) -> dict[Name, Name | None]:
    return {
        name: nodes.names[parent] if parent >= 0 else None
        for name, parent in zip(nodes.names, nodes.parents, strict=True)
    }


# -- Newick -----------------------------------------------------------------------------------------------------------


def _read_newick(file: str, text: str) -> Nodes:
    """One node for every opening parenthesis and comma, named by the label that follows."""
    names: list[str | None] = [None]
    parents = [-1]
    has_children = {-1}
    node = 0
    expects_length = ended = False
    position = 0

    def refuse(what: str) -> NoReturn:
        raise ValueError(f"{file}, line {text.count(chr(10), 0, position) + 1}: {what}")

    while position < len(text):
        match = _NEWICK_TOKEN.match(text, position)
        if match is None:
            refuse(f"{text[position : position + 20]!r} is a quote or a comment without an end")
        sign, quoted, plain = match["sign"], match["quoted"], match["plain"]
        label = plain if quoted is None else quoted.replace("''", "'")
        if (sign or label is not None) and ended:
            refuse(f"there is {match[0]!r} after the semicolon, but a file holds one tree")
        if expects_length and (sign or label is not None):
            if plain is None:
                refuse(f"expected a length after the colon, got {match[0]!r}")
            expects_length = False
        elif label is not None:
            if not label or names[node] is not None:
                refuse(f"{match[0]!r} is no name or a second one; quote names that contain spaces: 'A b'")
            names[node] = label
        elif sign == "(":
            if names[node] is not None or node in has_children:
                refuse("a parenthesis opens after a name; names stand behind their closing parenthesis")
            parents.append(node)
            has_children.add(node)
        elif sign in (",", ")") and node == 0:
            refuse(f"{sign!r} outside of all parentheses")
        elif sign == ",":
            parents.append(parents[node])
        elif sign == ")":
            node = parents[node]
        elif sign == ":":
            expects_length = True
        elif sign == ";":
            if node != 0:
                refuse("the tree ends inside a parenthesis")
            ended = True
        if sign in ("(", ","):
            names.append(None)
            node = len(names) - 1
        position = match.end()
    if node != 0:
        refuse("the tree ends inside a parenthesis")
    return _name_newick_nodes(file, names, parents)


def _name_newick_nodes(file: str, names: list[str | None], parents: list[int]) -> Nodes:
    given = [name for name in names if name is not None]
    becomes = _as_integers(given)
    taken = set(given)
    inner = set(parents)
    number = 0
    named: list[Name] = []
    for node, name in enumerate(names):
        if name is not None:
            named.append(becomes[name])
        elif node not in inner:
            sibling = next((given for given in names[:node][::-1] if given), None)
            raise ValueError(f"{file}: a leaf has no name" + (f" (after {sibling!r})" if sibling else ""))
        elif node == 0:
            named.append(next(name for name in _root_names() if name not in taken))
        else:
            number += 1
            while f"node {number}" in taken:
                number += 1
            named.append(f"node {number}")
    _refuse_repeated(named, parents)
    return Nodes(named, parents)


def _refuse_repeated(names: list[Name], parents: list[int]) -> None:
    first: dict[Name, int] = {}
    for node, name in enumerate(names):
        other = first.setdefault(name, node)
        if other != node:
            below = [repr(names[parents[i]]) if parents[i] >= 0 else "nothing" for i in (other, node)]
            raise ValueError(f"the name {name!r} comes twice, below {below[0]} and below {below[1]}; rename one")


# -- JSON -------------------------------------------------------------------------------------------------------------


def _read_json(file: str, text: str) -> Nodes:
    try:
        content = json.loads(text, object_pairs_hook=_object)
    except json.JSONDecodeError as error:
        raise ValueError(f"{file}, line {error.lineno}: not valid JSON: {error.msg}") from None
    except RecursionError:
        raise ValueError(f"{file} is nested too deeply for JSON; write the tree as edges") from None
    root, content = _json_root(content)
    names: list[Any] = [root]
    parents = [-1]
    queue = deque([(0, content)])
    while queue:
        node, below = queue.popleft()
        for name, content in _json_children(below, names[node]):
            queue.append((len(names), content))
            names.append(name)
            parents.append(node)
    if root is None:
        known = set(names)
        names[0] = next(name for name in _root_names() if name not in known)
    if len(names) == 1:
        raise ValueError(f"there is no class below {names[0]!r}")
    _refuse_repeated(names, parents)
    return Nodes(names, parents)


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    content = dict(pairs)
    if len(content) < len(pairs):
        keys = [key for key, _ in pairs]
        raise ValueError(f"the key {next(key for key in keys if keys.count(key) > 1)!r} comes twice in one object")
    return content


def _is_json_name(value: object) -> bool:
    return (isinstance(value, str) and value != "") or (isinstance(value, int) and not isinstance(value, bool))


def _is_json_node(content: object) -> bool:
    """Whether this is {"name": ..., "children": [...]}, possibly with more keys."""
    return (
        isinstance(content, dict)
        and _is_json_name(content.get("name"))
        and isinstance(content.get("children", []), list | None)
    )


def _json_root(content: Any) -> tuple[Name | None, Any]:
    if _is_json_node(content):
        return content["name"], content.get("children")
    if isinstance(content, dict) and len(content) == 1:
        ((name, below),) = content.items()
        if below and isinstance(below, dict | list):
            return name, below
    if isinstance(content, dict | list):
        return None, content
    raise ValueError(f"expected an object or a list, got {content!r}")


def _json_children(content: Any, above: Name | None) -> Iterator[tuple[Name, Any]]:
    """Names of the nodes that the content holds, with what lies below them."""
    for entry in content if isinstance(content, list) else [content]:
        if entry is None and not isinstance(content, list):
            continue
        if _is_json_node(entry):
            yield entry["name"], entry.get("children")
        elif isinstance(entry, dict) and "" not in entry:
            yield from entry.items()
        elif _is_json_name(entry):
            yield entry, None
        else:
            where = "at the top" if above is None else f"below {above!r}"
            raise ValueError(f"{where}: {json.dumps(entry)[:60]} is no name; names are strings or integers")


FORMATS: dict[str, Callable[[str, str], Nodes]] = {
    "paths": lambda file, text: _read_paths(_table(file, text)),
    "edges": lambda file, text: _read_edges(_table(file, text)),
    "adjacency": lambda file, text: _read_adjacency(_table(file, text)),
    "newick": _read_newick,
    "json": _read_json,
}
