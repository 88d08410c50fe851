"""What errors say of names that no node has: another kind of name, or the closest one that there is."""

import difflib
from collections.abc import Collection, Sequence

import numpy as np

__all__ = ["hint_at_known"]

# Beyond this many names the search for the closest one looks at those of similar length only.
_MOST_COMPARED = 5000


def hint_at_known(unknown: Sequence[object], known: Collection[str | int], structure: str = "taxonomy") -> str:
    """The end of an error about unknown names: that they are of another kind, or a known name that is close to one."""
    below = list(known)[1:] or list(known)  # the root may have a name of its own kind
    if all(isinstance(name, str) for name in below) and all(isinstance(name, int | np.integer) for name in unknown):
        example = next((str(name) for name in unknown if str(name) in known), below[-1])
        return f"; the {structure}'s names are strings such as {example!r}, these are integers" + (
            " (where scikit-learn numbers labels, Taxonomy.encode helps)" if structure == "taxonomy" else ""
        )
    if all(isinstance(name, int) for name in below) and all(isinstance(name, str) for name in unknown):
        texts = set(unknown)
        example = next((name for name in below if str(name) in texts), below[-1])
        return f"; the {structure}'s names are integers such as {example!r}, these are strings"
    for name in unknown[:5]:
        closest = _closest(name, known)
        if closest is not None:
            hint = f"; is {closest!r} meant" + (f" by {name!r}?" if len(unknown) > 1 else "?")
            if str(closest) == str(name):
                hint += f" (the {structure} has it as {'a string' if isinstance(closest, str) else 'an integer'})"
            return hint
    return ""


def _closest(name: object, known: Collection[str | int]) -> str | int | None:
    text = str(name)
    if text in known:
        return text
    if not isinstance(name, str):
        return None
    same = next((other for other in known if not isinstance(other, str) and str(other) == text), None)
    if same is not None:
        return same
    strings = sorted(
        (other for other in known if isinstance(other, str)), key=lambda other: abs(len(other) - len(text))
    )
    matches = difflib.get_close_matches(text, strings[:_MOST_COMPARED], n=1, cutoff=0.4)
    return matches[0] if matches else None
