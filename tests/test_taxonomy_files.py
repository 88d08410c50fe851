"""Trees from files: every format, the guess between them, what is wrong in them, and real collections."""

import csv
import gzip
import json

import numpy as np
import pytest

from taxolearn.taxonomy import Taxonomy

TREE = Taxonomy.from_edges(
    [("top", "animal"), ("top", "plant"), ("animal", "cat"), ("animal", "dog"), ("plant", "tree"), ("tree", "oak")]
)
TEXTS = {
    "paths": "top animal cat\ntop animal dog\ntop plant tree oak\n",
    "edges": "top animal\ntop plant\nanimal cat\nanimal dog\nplant tree\ntree oak\n",
    "adjacency": "top\tanimal\tplant\nanimal\tcat\tdog\nplant\ttree\ntree\toak\n",
    "newick": "((cat:0.5,dog)animal:1e-3,((oak)tree)plant [a comment])top;\n",
    "json": json.dumps({"top": {"animal": ["cat", "dog"], "plant": {"tree": ["oak"]}}}),
}


@pytest.fixture
def write(tmp_path):
    def write(content, name="tree.txt"):
        path = tmp_path / name
        path.write_bytes(content if isinstance(content, bytes) else content.encode())
        return path

    return write


@pytest.fixture
def read(write):
    def read(content, format=None, name="tree.txt", **options):  # noqa: A002
        return Taxonomy.from_file(write(content, name), format=format, **options)

    return read


class TestFormats:
    @pytest.mark.parametrize("format", TEXTS)
    def test_given_or_guessed(self, read, format):  # noqa: A002
        text = TEXTS[format]
        assert read(text, format) == TREE
        assert read(text) == TREE
        assert read(text.replace("\n", "\r\n")) == TREE
        assert read("\ufeff" + text) == TREE
        assert read(text.rstrip("\n") + "\n\n  \n") == TREE
        assert read(gzip.compress(text.encode())) == TREE
        assert read(text.encode("utf-16"), encoding="utf-16") == TREE

    def test_path_kinds(self, write):
        path = write(TEXTS["edges"])
        assert Taxonomy.from_file(str(path)) == TREE

    def test_random_trees(self, read):
        """Every format gives back the tree that was written in it."""
        for seed in range(30):
            rng = np.random.default_rng(seed)
            n = int(rng.integers(4, 30))
            names = [f"n{p}" for p in range(n)] if seed % 2 else rng.permutation(100)[:n].tolist()
            parents = np.array([-1, 0, 0, 1, *(rng.integers(0, p) for p in range(4, n))])
            tree = Taxonomy.from_parents(parents, names)
            children = {name: tree.children(name) for name in tree.names}
            root = tree.names[0]

            def newick(name, children=children):
                below = ",".join(map(newick, children[name]))
                return f"({below}){name}" if below else str(name)

            def nested(name, children=children):
                return {"name": name, "children": [nested(child) for child in children[name]], "weight": 1.5}

            def objects(name, children=children):
                return {str(child): objects(child) for child in children[name]}

            paths = "\n".join(" ".join(map(str, [root, *tree.path(leaf)])) for leaf in tree.classes.tolist())
            for text in (
                paths,
                "\n".join(f"{a} {b}" for a, b in tree.to_edges()),
                newick(root) + ";",
                json.dumps(nested(root)),
            ):
                found = read(text)
                assert found.parent(tree.names[0]) is None
                assert set(found.to_edges()) == set(tree.to_edges())
            keys = read(json.dumps({str(root): objects(root)}))  # always strings
            assert set(keys.to_edges()) == {(str(a), str(b)) for a, b in tree.to_edges()}
            adjacency = "\n".join(" ".join(map(str, [name, *children[name]])) for name in tree.names)
            assert set(read(adjacency, "adjacency").to_edges()) == set(tree.to_edges())


class TestLines:
    def test_integers(self, read):
        assert read("1 2 4\n1 2 5\n1 3\n").classes.tolist() == [3, 4, 5]
        assert read("1 2 4\n1 2 05\n1 3\n").classes.tolist() == ["3", "4", "05"]
        assert read("1 -2\n1 0\n").classes.tolist() == [-2, 0]
        assert read(f"1 2\n1 {2**63}\n").classes.tolist() == ["2", str(2**63)]
        assert read(f"1 2\n1 {2**63 - 1}\n").classes.tolist() == [2, 2**63 - 1]

    def test_root_of_paths(self, read):
        assert read("a x\na y\nb z\n").to_edges() == [
            ("root", "a"), ("root", "b"), ("a", "x"), ("a", "y"), ("b", "z"),
        ]  # fmt: skip
        assert read("1 3\n1 4\n2 5\n").names.tolist() == ["root", 1, 2, 3, 4, 5]
        assert read("root x\nroot y\nb z\n").names[0] == "root 2"
        assert read("a\nb\nc\n").to_edges() == [("root", "a"), ("root", "b"), ("root", "c")]

    def test_a_path_that_is_the_beginning_of_another(self, read):
        assert read("1 2\n1 2 3\n1 4\n").path(2) == ["2/*", 2]
        assert read("1\n1 2\n").path(1) == ["1/*", 1]

    def test_tabs_let_names_have_spaces(self, read):
        assert read("all\tblue sky\nall\tred sun\n").classes.tolist() == ["blue sky", "red sun"]

    def test_an_adjacency_list_may_go_on_in_another_line(self, read):
        text = "r a b\na x\nr c\nb\n"
        assert read(text, "adjacency").classes.tolist() == ["b", "c", "x"]

    @pytest.mark.parametrize(
        ("text", "format", "message"),
        [
            ("1 2\n1 3\n\n4 2\n", "edges", r"tree.txt, line 4: 2 has two parents, 1 \(.*tree.txt, line 1\) and 4"),
            ("1 2\n2 3\n3 2\n", "edges", "tree.txt, line 3: 2 has two parents"),
            ("0 1\n2 3\n3 2\n", "edges", "tree.txt, line 2: the nodes 2 -> 3 -> 2 form a cycle"),
            ("1 2\n3 3\n", "edges", "tree.txt, line 2: 3 is its own parent"),
            ("1 2\n1 3 4\n", "edges", "tree.txt, line 2 has 3 columns.*: 1, 3, 4"),
            ("1 2\n3 4\n", "edges", "tree.txt: 2 nodes have no parent: 1, 3"),
            ("r a\nr b x\nr c x\n", "paths", "tree.txt, line 3: 'x' lies below 'b' and below 'c'"),
            ("r a b\na x\nq\n", "adjacency", "tree.txt, line 3: 'q' has neither a parent nor children"),
            ("r a b\na x\nb x\n", "adjacency", "tree.txt, line 3: 'x' has two parents, 'a'"),
            ("r\ta\nr\t\tb\n", "paths", "tree.txt, line 2 has an empty column"),
            ("", None, "tree.txt is empty"),
            (" \n\n", "edges", "tree.txt is empty"),
            ("a b\n", "csv", "format is 'csv', expected None or one of 'paths', 'edges'"),
            ("a b\n", ["edges"], r"format is \['edges'\], expected None or one of 'paths', 'edges'"),
            ("a b\n", 3, "format is 3, expected None or one of 'paths', 'edges'"),
            ("a b c\n", None, "different trees when read as paths or as adjacency; pass format="),
            ("a x y\nb z w\n", None, "may hold a path on each line, or a parent and its children"),
            ("a b\nb c\nc a\n", None, r"no tree in any format; pass format=(.|\n)*as edges: .*cycle"),
        ],
    )
    def test_refused(self, read, text, format, message):  # noqa: A002
        with pytest.raises(ValueError, match=message):
            read(text, format)

    def test_unreadable(self, read, tmp_path):
        with pytest.raises(ValueError, match=r"tree.txt, line 2, column 3: expected text in utf-8, .*encoding"):
            read("a b\na ä\n".encode("latin-1"))
        assert read("a b\na ä\n".encode("latin-1"), encoding="latin-1").classes.tolist() == ["b", "ä"]
        with pytest.raises(ValueError, match=r"tree.txt: the gzip data are cut short or damaged"):
            read(gzip.compress(b"a b\n")[:-9])
        with pytest.raises(FileNotFoundError):
            Taxonomy.from_file(tmp_path / "absent.txt")


class TestNewick:
    def test_names(self, read):
        assert read("(a,b);").to_edges() == [("root", "a"), ("root", "b")]
        assert read("((a,b),(c,d)):0;").names.tolist() == ["root", "node 1", "node 2", "a", "b", "c", "d"]
        assert read("('it''s a, b',\n  c_d )'the root';").names.tolist() == ["the root", "it's a, b", "c_d"]
        assert read("((1,2)3,4);").classes.tolist() == [4, 1, 2]
        assert read("(a,b)c", name="tree.nwk").names.tolist() == ["c", "a", "b"]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ("((a,b);", "line 1: the tree ends inside a parenthesis"),
            ("((a,b)", "the tree ends inside a parenthesis"),
            ("(a,b));", r"'\)' outside of all parentheses"),
            ("(a,\n,b);", "a leaf has no name .after 'a'"),
            ("(a,\nb c);", "line 2: 'c' is no name or a second one; quote"),
            ("(a,b)(c,d);", "a parenthesis opens after a name"),
            ("a(b,c);", "a parenthesis opens after a name"),
            ("(a,b);(c,d);", r"there is '\(' after the semicolon"),
            ("(a:,b);", "expected a length after the colon, got ','"),
            ("(a,'b);", "quote or a comment without an end"),
            ("((a,b)x,(a,c)y);", "the name 'a' comes twice, below 'x' and below 'y'"),
            ("a;", "at least a root and one class"),
        ],
    )
    def test_refused(self, read, text, message):
        with pytest.raises(ValueError, match=message):
            read(text, "newick")

    def test_deep(self, read):
        depth = 50_000
        assert read("(" * depth + "a" + ")" * depth + ";").height == depth


class TestJson:
    @pytest.mark.parametrize(
        "content",
        [
            {"animal": ["cat", "dog"], "plant": {"tree": ["oak"]}},
            {"animal": {"cat": None, "dog": {}}, "plant": {"tree": "oak"}},
            [{"animal": ["cat", "dog"]}, {"plant": [{"tree": {"oak": []}}]}],
            [{"name": "animal", "children": [{"name": "cat"}, "dog"]}, {"plant": {"tree": ["oak"]}}],
            {
                "name": "root",
                "children": [{"animal": ["cat", "dog"]}, {"name": "plant", "children": [{"tree": "oak"}]}],
            },
        ],
    )
    def test_shapes(self, read, content):
        expected = Taxonomy.from_edges([("root" if a == "top" else a, b) for a, b in TREE.to_edges()])
        assert read(json.dumps(content, indent=2)) == expected

    def test_integers(self, read):
        assert read('{"1": [10, 11], "2": 20}').names.tolist() == ["root", "1", "2", 10, 11, 20]
        assert read('{"a": [10, 11], "b": 20}').classes.tolist() == [10, 11, 20]
        assert read('{"name": "all", "children": [1, {"name": 2}]}').names.tolist() == ["all", 1, 2]
        assert read('{"name": 0, "children": [1, 2]}').names.tolist() == [0, 1, 2]
        assert read('["10", "11"]').classes.tolist() == ["10", "11"]
        assert read('{"1": [1]}').names.tolist() == ["1", 1]

    @pytest.mark.parametrize(
        ("text", "message"),
        [
            ('{"a": ["x",\n "y"', "tree.txt, line 2: not valid JSON"),
            ('{"a": ["x"], "b": ["x"]}', "tree.txt: the name 'x' comes twice, below 'a' and below 'b'"),
            ('{"a": ["x"], "a": ["y"]}', "tree.txt: the key 'a' comes twice in one object"),
            ('{"a": [1.5], "b": 2}', "below 'a': 1.5 is no name"),
            ('{"a": [true], "b": 2}', "below 'a': true is no name"),
            ('["a", null]', "at the top: null is no name"),
            ('["a", ["b"]]', "is no name"),
            ('{"a": {"": ["x"]}, "b": []}', "below 'a'.*is no name"),
            ('"a"', "expected an object or a list"),
            ('{"a": [1, 2], "b": ["x"]}', "the classes are strings and integers, such as 'x' and 1"),
            ('{"a": [1, "1"]}', "the classes are strings and integers, such as '1' and 1"),
            (f"[1, {2**63}]", f"the integer name {2**63} does not fit into 64 bits"),
            ("{}", "there is no class below 'root'"),
            ('{"name": "a"}', "there is no class below 'a'"),
            ("[" * 100_000, "nested too deeply|not valid JSON"),
        ],
    )
    def test_refused(self, read, text, message):
        with pytest.raises(ValueError, match=message):
            read(text, "json")


@pytest.mark.data
class TestRealTrees:
    def check(self, taxonomy, edges):
        """The same edges as found by other means, and text and pruning that work."""
        assert {(str(a), str(b)) for a, b in taxonomy.to_edges()} == edges
        assert len(str(taxonomy).splitlines()) <= 60
        pruned, where = taxonomy.prune()
        assert set(pruned.classes.tolist()) == set(taxonomy.classes.tolist())
        sizes = taxonomy.leaf_end - taxonomy.leaf_begin
        np.testing.assert_array_equal((pruned.leaf_end - pruned.leaf_begin)[where], sizes)

    def test_lshtc(self, data_file):
        path = data_file("lshtc_dryrun/cat_hier.txt")
        rows = [line.split() for line in path.read_text().splitlines()]
        edges = {pair for row in rows for pair in zip(["root", *row], row, strict=False)}
        taxonomy = Taxonomy.from_file(path)
        self.check(taxonomy, edges)
        assert taxonomy.n_classes == 1139
        assert taxonomy.height == 5
        assert taxonomy.classes.dtype == np.int64
        with gzip.open(data_file("lshtc_dryrun/test.txt.gz"), "rt") as file:
            labels = {int(line.split(None, 1)[0]) for line in file}
        assert len(taxonomy.leaf_index(sorted(labels))) == len(labels)

    def test_clef(self, data_file):
        path = data_file("clef/hiercost_cat_hier.txt")
        taxonomy = Taxonomy.from_file(path)
        self.check(taxonomy, {tuple(line.split()) for line in path.read_text().splitlines()})
        assert taxonomy.n_classes == 63
        assert taxonomy.n_nodes - 1 == 96
        assert taxonomy.names[0] == 0

    def test_rcv1(self, data_file):
        path = data_file("rcv1/rcv1.taxonomy")
        taxonomy = Taxonomy.from_file(path)
        rows = [line.split("\t") for line in path.read_text().splitlines()]
        self.check(taxonomy, {(row[0], child) for row in rows for child in row[1:]})
        assert taxonomy.n_nodes - 1 == 103
        assert taxonomy.names[0] == "Root"
        # Documents carry inner topics too, so all 103 become classes.
        assert taxonomy.with_classes(taxonomy.names[1:]).n_classes == 103
        assert (taxonomy.groups("subtree")[0] == taxonomy.children("Root").index("CCAT")).sum() == 34

    def test_clinc150(self, data_file):
        path = data_file("clinc150/domains.json")
        taxonomy = Taxonomy.from_file(path)
        domains = json.loads(path.read_text())
        edges = {("root", domain) for domain in domains}
        self.check(taxonomy, edges | {(domain, intent) for domain in domains for intent in domains[domain]})
        assert taxonomy.n_classes == 150
        assert taxonomy.n_inner == 11
        assert taxonomy.classes.tolist() == [intent for intents in domains.values() for intent in intents]

    def test_onet(self, data_file):
        path = data_file("onet/Occupation_Data.txt.gz")
        with gzip.open(path, "rt", encoding="utf-8") as file:
            codes = [row[0] for row in csv.reader(file, delimiter="\t")][1:]
        paths = [list(dict.fromkeys([code[:2], code[:4], code[:6], code[:7], code])) for code in codes]
        taxonomy = Taxonomy.from_paths(paths)
        self.check(taxonomy, {pair for path in paths for pair in zip(["root", *path], path, strict=False)})
        assert taxonomy.n_classes == 1016
        assert taxonomy.leaves("15-1").tolist() == [code for code in codes if code.startswith("15-1")]

    def test_news20(self, data_file):
        path = data_file("news20/news20_rennie_vocab_counts.npz")
        with np.load(path) as file:
            groups = file["groups"].tolist()
        taxonomy = Taxonomy.from_labels(groups, separator=".")
        assert set(taxonomy.classes.tolist()) == set(groups)
        assert taxonomy.n_classes == 20
        assert len(taxonomy.children("root")) == 7
        pruned, _ = taxonomy.prune()
        assert pruned.path("comp.os.ms-windows.misc") == ["comp", "comp.os.ms-windows.misc"]
        assert pruned.path("comp.sys.mac.hardware") == ["comp", "comp.sys", "comp.sys.mac.hardware"]
