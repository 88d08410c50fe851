"""What tests of the commands share: words that tell the class, tables of rows, and commands run in this process."""

import csv

from taxolearn.cli import main

WORDS = {
    "fruit/apple": "apple orchard cider red green",
    "fruit/pear": "pear orchard perry yellow green",
    "tool/hammer": "hammer nail wood iron",
    "tool/saw": "saw blade wood iron",
    "water": "sea river wave",
}


def write_table(path, rows, delimiter=","):
    """Write rows, which are dicts, and return the path."""
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]), delimiter=delimiter)
        writer.writeheader()
        writer.writerows(rows)
    return path


def run(capsys, *arguments):
    """Exit code, standard output and standard error."""
    code = main([str(argument) for argument in arguments])
    printed = capsys.readouterr()
    return code, printed.out, printed.err
