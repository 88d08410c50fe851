"""Reader of sequences in FASTA."""

from __future__ import annotations

from dataclasses import dataclass

from taxolearn.raw_files import Source, name_of, read_lines

__all__ = ["FastaData", "read_fasta"]


@dataclass(frozen=True)
class FastaData:
    """Sequences of a FASTA file.

    Attributes
    ----------
    names : list of str
        What stands between ">" and the first blank of each header.
    descriptions : list of str
        The rest of each header.
    sequences : list of str
        The lines below each header, put together without blanks.
    """

    names: list[str]
    descriptions: list[str]
    sequences: list[str]


def read_fasta(source: Source) -> FastaData:
    """Read sequences, such as proteins or DNA.

    Parameters
    ----------
    source : path or binary file
        Compressed files (gzip) are recognised by their content. The encoding is UTF-8. Lines that begin with ";" are
        comments.

    Raises
    ------
    ValueError
        If there is a sequence before the first header, a header without a name, or no sequence at all.
    """
    names: list[str] = []
    descriptions: list[str] = []
    parts: list[list[str]] = []
    for number, line in enumerate(read_lines(source, "utf-8"), start=1):
        if line.startswith(">"):
            name, _, description = line[1:].strip().partition(" ")
            if not name:
                raise ValueError(f"{name_of(source)}, line {number}: a header without a name, expected >NAME")
            names.append(name)
            descriptions.append(description.strip())
            parts.append([])
        elif line.strip() and not line.startswith(";"):
            if not parts:
                raise ValueError(f"{name_of(source)}, line {number}: expected a header, >NAME, found {line[:60]!r}")
            parts[-1].append("".join(line.split()))
    if not names:
        raise ValueError(f"{name_of(source)} has no sequences, expected FASTA: a header >NAME, then lines of letters")
    return FastaData(names, descriptions, ["".join(lines) for lines in parts])
