"""The documentation holds together: links lead somewhere, generated pages are whole, and code on pages is true."""

import ast
import importlib.util
import os
import re
import subprocess
import sys
import zlib
from pathlib import Path
from urllib.parse import unquote

import pytest
import scipy
from pages import DOCS, read_page, run_page
from sklearn.utils.fixes import parse_version

import taxolearn
from taxolearn import plotting

ROOT = Path(__file__).resolve().parent.parent
CONFIG = (ROOT / ".mkdocs.yml").read_text(encoding="utf-8")
PAGES = [ROOT / "README.md", ROOT / "bench" / "README.md", *sorted(DOCS.rglob("*.md"))]
PUBLIC_MODULES = (
    taxolearn.datasets,
    taxolearn.decisions,
    taxolearn.features,
    taxolearn.kernels,
    taxolearn.metrics,
    taxolearn.model_selection,
    plotting,
)


def load(name):
    """A module from the folder of the pages, as mkdocs loads it."""
    spec = importlib.util.spec_from_file_location(name, DOCS / f"{name}.py")
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


benchmarks, gallery = load("build_benchmarks"), load("build_gallery")
GENERATED = {*benchmarks.pages(), *benchmarks.figures(), gallery.PAGE}


def relative(path):
    return path.relative_to(ROOT).as_posix()


def prose(text):
    """The page without its code."""
    return re.sub(r"^( *)```.*?^\1```", "", text, flags=re.DOTALL | re.MULTILINE)


def links(text):
    found = re.findall(r"\]\(([^)\s]+)\)", re.sub(r"`[^`]*`", "", prose(text)))
    return [link for link in found if not re.match(r"\w+:", link)]


def anchors(text):
    """Of the headings, as mkdocs and GitHub make them."""
    headings = re.findall(r"^#+ (.+)$", prose(text), flags=re.MULTILINE)
    return {re.sub(r"[\s]+", "-", re.sub(r"[^\w\s-]", "", heading).strip().lower()) for heading in headings}


def broken_links(text, folder):
    """Links of a page in this folder to files or headings that are not there."""
    broken = []
    for link in links(text):
        name, _, anchor = unquote(link).partition("#")
        target = (folder / name).resolve() if name else None
        if target is not None and not target.exists():
            if not (target.is_relative_to(DOCS) and target.relative_to(DOCS).as_posix() in GENERATED):
                broken.append(link)
        elif anchor and anchor not in anchors(text if target is None else target.read_text(encoding="utf-8")):
            broken.append(link)
    return broken


class TestLinks:
    @pytest.mark.parametrize("path", PAGES, ids=relative)
    def test_all_lead_somewhere(self, path):
        assert broken_links(path.read_text(encoding="utf-8"), path.parent) == []

    def test_generated_pages(self):
        for place, text in {**benchmarks.pages(), gallery.PAGE: gallery.page(run=False)}.items():
            assert broken_links(text, (DOCS / place).parent) == [], place

    def test_the_check_itself(self):
        text = "# A b, c\n[1](index.md) [2](none.md) [3](#a-b-c) [4](#a) [5](commands.md#model-files) [6](kernels.md#x)"
        assert broken_links(text, DOCS) == ["none.md", "#a", "kernels.md#x"]
        assert broken_links("[a](benchmarks/index.md) [b](https://x.invalid/y.md) `[c](d.md)`", DOCS) == []


class TestNavigation:
    entries = re.findall(r"^ +- (?:[^:\n]+: )?(\S+\.md)$", CONFIG.split("\nnav:\n")[1], flags=re.MULTILINE)

    def test_every_entry_exists(self):
        assert len(self.entries) > 15
        assert [name for name in self.entries if not (DOCS / name).is_file() and name not in GENERATED] == []

    def test_every_page_is_an_entry(self):
        pages = {path.relative_to(DOCS).as_posix() for path in DOCS.rglob("*.md")}
        assert pages - set(self.entries) == set()

    def test_hooks_and_styles_exist(self):
        for name in re.findall(r"- (docs/\w+\.py)", CONFIG):
            assert (ROOT / name).is_file()
        assert (DOCS / re.search(r"extra_css:\n  - (\S+)", CONFIG).group(1)).is_file()


class TestBenchmarks:
    @pytest.fixture
    def bench(self, tmp_path):
        """A folder as bench, with one known suite, which has a figure, and another one."""
        (tmp_path / "results").mkdir()
        table = "| a | b |\n| --- | --- |\n| 1 | - |\n\nA remark.\n"
        for name in ("other", "known"):
            machine = "Some processor, 2 cores, compiled for native; threads 1, repeats 3; python 3.11"
            text = f"# Title of {name}\n\n{machine}.\n\n{table}"
            (tmp_path / "results" / f"{name}.md").write_text(text, encoding="utf-8")
        (tmp_path / "results" / "known.svg").write_text("<svg/>")
        (tmp_path / "README.md").write_text("# Benchmarks\n\nTwo words.\n\n| `known` | What it measures. |\n")
        return tmp_path

    def test_one_page_for_each_result(self, bench):
        pages = benchmarks.pages(bench)
        assert list(pages) == ["benchmarks/index.md", "benchmarks/known.md", "benchmarks/other.md"]
        assert list(benchmarks.figures(bench)) == ["benchmarks/known.svg"]

    def test_page(self, bench):
        page = benchmarks.pages(bench)["benchmarks/known.md"]
        parts = ("# Title of known", "What it measures.", "(known.svg)", "| 1 | - |", "A remark.", "Some processor")
        places = [page.index(part) for part in parts]
        assert places == sorted(places)
        assert ".svg" not in benchmarks.pages(bench)["benchmarks/other.md"]

    def test_overview(self, bench):
        overview = benchmarks.pages(bench)["benchmarks/index.md"]
        assert "Two words." in overview
        assert "| [known](known.md) | Title of known | Some processor, 2 cores, threads 1 |" in overview

    def test_a_new_result_needs_no_other_change(self, bench):
        (bench / "results" / "new.md").write_text("# New\n\nA processor; x 1.\n\n| a |\n| --- |\n| 2 |\n")
        assert "| 2 |" in benchmarks.pages(bench)["benchmarks/new.md"]

    def test_all_of_the_repository(self):
        results = {path.stem for path in (ROOT / "bench" / "results").glob("*.md")}
        assert len(results) > 10
        assert set(benchmarks.suites()) == results
        for name in results:
            table = re.findall(r"^\|.*$", (ROOT / "bench/results" / f"{name}.md").read_text("utf-8"), re.MULTILINE)
            page = benchmarks.suite_page(name)
            assert all(line in page for line in table)


class TestGallery:
    def test_every_example_is_there_with_its_code(self):
        page = gallery.page(run=False)
        for path in sorted((ROOT / "examples").glob("*.py")):
            assert f"examples/{path.name}" in page
            assert path.read_text(encoding="utf-8").splitlines()[-1].strip() in page

    def test_what_is_printed_is_kept_until_the_example_changes(self, tmp_path):
        example, kept = tmp_path / "small.py", tmp_path / "kept"
        example.write_text('"""Title.\n\nText."""\n\nprint(40 + 2)\n')
        assert gallery.printed_by(example, kept) == "42\n"
        (known,) = kept.iterdir()
        known.write_text("from the file\n")
        assert gallery.printed_by(example, kept) == "from the file\n"
        example.write_text('"""Title."""\n\nprint(43)\n')
        assert gallery.printed_by(example, kept) == "43\n"
        assert gallery.section(example, "43\n").startswith("## Title\n")

    def test_an_example_that_fails_stops_the_build(self, tmp_path):
        example = tmp_path / "wrong.py"
        example.write_text('"""Title."""\nraise SystemExit("no")\n')
        with pytest.raises(RuntimeError, match=r"wrong\.py failed"):
            gallery.printed_by(example, tmp_path)


def test_the_first_page_runs(capsys):
    assert run_page("index.md") == 1
    most_probable, sure, gap = capsys.readouterr().out.splitlines()
    # The two modules are nearly equally probable, and scipy 1.18 has other docstrings.
    first = "scipy/sparse/linalg" if parse_version(scipy.__version__) < parse_version("1.18") else "scipy/sparse"
    assert (most_probable, sure) == (f"['{first}']", "['scipy/sparse/*']")
    assert float(gap.split()[-1]) <= 1e-4


def test_the_page_of_uncertain_labels_runs(capsys):
    assert run_page("uncertain-labels.md") == 5
    rounds, _, added, absent = capsys.readouterr().out.splitlines()
    assert rounds.startswith("ExpectationResult(status='converged'")
    page = read_page("uncertain-labels.md")
    said = re.search(r"probability is ([\d.]+) in rows .*?, ([\d.]+) in those .* and ([\d.]+) in", page).groups()
    shares = [float(share) for share in added.split()]
    assert shares == pytest.approx([float(share) for share in said], rel=0.3)
    assert all(float(less) < share for less, share in zip(absent.split(), shares, strict=True))


def test_the_page_of_margins_runs(capsys):
    assert run_page("max-margin.md") == 3
    first, right, gap, chosen, proba, sets = capsys.readouterr().out.splitlines()
    assert len(ast.literal_eval(first)) == len(ast.literal_eval(sets)) == 3
    assert float(right.split()[0]) > 0.3
    assert gap.startswith("certified gap ")
    assert float(chosen.split()[0]) in (0.03, 0.1, 0.3, 1.0, 3.0, 10.0)
    assert proba.startswith("[[")


def test_the_page_of_hierarchical_bayes_runs(capsys):
    assert run_page("hierarchical-bayes.md") == 4
    lines = capsys.readouterr().out.splitlines()
    assert float(lines[0].split()[0]) > 0.6
    leaves = ["art", "pet/cat", "pet/dog", "place/beach", "place/town"]
    assert [line.split()[0] for line in lines[1:8]] == ["pet", "place", *leaves]
    answers, precisions, (sure, averaged), (rounds, rises, right) = lines[8], lines[9], *map(str.split, lines[10:])
    assert len(ast.literal_eval(answers)) == 3
    assert precisions.startswith("{'pet'")
    assert float(averaged) < float(sure)
    assert int(rounds) > 1
    assert rises == "True"
    assert float(right) > 0.6


def test_the_page_of_several_labels_runs(capsys):
    assert run_page("several-labels.md") == 9
    first, classes, found, sizes, top, single, machine, answers, radial, reported = capsys.readouterr().out.splitlines()
    assert machine.endswith("True")
    assert answers.endswith("(3, 7)")
    assert radial.endswith("True")
    assert re.fullmatch(r"[\d.]+% True", reported)
    assert all(isinstance(labels, tuple) for labels in ast.literal_eval(first))
    assert ast.literal_eval(classes) == ["art", "pet", "pet/cat", "pet/dog", "place", "place/beach", "place/town"]
    assert found.endswith("converged")
    counts = ast.literal_eval(sizes)
    assert counts["f1"] > counts["hamming"]
    assert all(len(labels) == 2 for labels in ast.literal_eval(top))
    assert single == "True True"
    assert machine.endswith("True")


def test_the_page_of_blocks_runs(capsys):
    assert run_page("blocks.md") == 8
    together, apart, kernel, *_ = capsys.readouterr().out.splitlines()
    said = re.search(r"falls from ([\d.]+) \(one matrix\) to ([\d.]+)", read_page("blocks.md")).groups()
    losses = [float(line.split()[-1]) for line in (together, apart)]
    assert losses == pytest.approx([float(loss) for loss in said], abs=0.02)
    assert kernel.startswith("PerBlock({'words': Linear(")


def test_the_page_of_scores_of_several_labels_runs(capsys):
    assert run_page("several-labels-scores.md") == 3
    micro, macro, losses, precision, scored, levels = capsys.readouterr().out.splitlines()
    assert micro == "PrecisionRecallF(precision=0.5, recall=0.6666666666666666, f=0.5714285714285714)"
    assert macro == "PrecisionRecallF(precision=0.5, recall=0.5, f=0.5)"
    assert [float(loss) for loss in losses.split()] == pytest.approx([1 / 3, 1])
    assert float(precision) == pytest.approx(1 / 2)
    assert float(scored) == 1
    assert levels == "[0.66666667 1.        ]"


class TestAddingAKernel:
    page = read_page("adding-a-kernel.md")

    def test_it_runs(self, capsys):
        assert run_page("adding-a-kernel.md") == 4
        printed = capsys.readouterr().out
        assert "Function(laplacian, variance=" in printed
        assert "('length_scale', 'variance')\n2\n" in printed
        assert printed.count("True") == 3
        assert "False" not in printed

    def test_files_and_names_are_there(self):
        """Every path that is named exists, and every name of code stands in some file that the page names."""
        spans = set(re.findall(r"`([^`\n]+)`", prose(self.page)))
        paths = {span for span in spans if "/" in span}
        assert len(paths) > 12
        assert [path for path in paths if not (ROOT / path).is_file()] == []
        code = "".join((ROOT / path).read_text(encoding="utf-8") for path in paths)
        names = {span for span in spans - paths if re.fullmatch(r"\w+", span)} - {"GridSearchCV"}
        assert [name for name in names if name not in code] == []

    def test_quoted_lines_are_those_of_the_sources(self):
        quoted = re.findall(r"```(?:cpp|py)\n(.*?)```", self.page, flags=re.DOTALL)
        assert len(quoted) >= 5
        folders = (("cpp", "*.?pp"), ("python/taxolearn", "*.py"))
        sources = [path.read_text("utf-8") for folder, ending in folders for path in (ROOT / folder).rglob(ending)]
        lines = {line for source in sources for line in source.splitlines()}
        assert [line for block in quoted for line in block.splitlines() if line not in lines] == []


def test_pictures_are_used_and_there():
    used = {
        name for path in DOCS.glob("*.md") for name in re.findall(r"\(pictures/(\w+)\.svg\)", path.read_text("utf-8"))
    }
    assert used == {path.stem for path in (DOCS / "pictures").glob("*.svg")}
    source = (DOCS / "pictures.py").read_text(encoding="utf-8")
    assert all(f'"{name}": {name}' in source for name in used)


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """The whole site; printed answers of the examples are left out."""
    pytest.importorskip("mkdocs", reason='the site is built by mkdocs (pip install ".[docs]")')
    for needed in ("material", "mkdocstrings"):
        pytest.importorskip(needed, reason='themes and reference come with pip install ".[docs]"')
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "-f", ROOT / ".mkdocs.yml", "-d", folder]
    environment = os.environ | {"TAXOLEARN_GALLERY": "code"}
    done = subprocess.run(command, capture_output=True, text=True, check=False, cwd=ROOT, env=environment)
    assert done.returncode == 0, done.stderr
    return folder


def test_the_reference_has_every_public_name(site):
    inventory = (site / "objects.inv").read_bytes().split(b"\n", 4)[4]
    known = {line.split()[0] for line in zlib.decompress(inventory).decode().splitlines()}
    expected = {f"taxolearn.{name}" for name in taxolearn.__all__ if name != "__version__"}
    expected |= {f"{module.__name__}.{name}" for module in PUBLIC_MODULES for name in module.__all__}
    assert expected - known == set()


def test_the_reference_tells_types_and_defaults(site):
    """Choices with an alternative, and several parameters in one entry, are what its parser gets wrong by itself."""
    plain = load("docstrings").plain
    text = 'a : {"x", "y"} or array, default="y"\n    See :func:`f.g`.\nb, c : int\n    Two.\n\n    Lines.\nd : int'
    expected = 'a : one of "x", "y" or array, default="y"\n    See ``f.g``.\n'
    expected += "".join(f"{name} : int\n    Two.\n\n    Lines.\n" for name in "bc") + "d : int"
    assert plain(text) == expected
    page = re.sub(r"<[^>]+>|\s+", " ", (site / "api" / "classifier.html").read_text(encoding="utf-8"))
    tying = re.search(r"&#34;node&#34; +or array of int .*? (\S+) +variances ", page)
    assert tying.group(1) == "&#34;level&#34;"
    assert not any(":func:" in path.read_text(encoding="utf-8") for path in (site / "api").glob("*.html"))


def test_pages_fetch_nothing(site):
    for path in site.rglob("*.html"):
        fetched = re.findall(r'<(?:script|img|link)[^>]*(?:src|href)="(https?:[^"]+)"', path.read_text("utf-8"))
        assert [address for address in fetched if "canonical" not in address] == [], path.name
