#include <doctest/doctest.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <map>
#include <random>
#include <sstream>
#include <string>
#include <thread>

#include "taxolearn/base/check.hpp"
#include "taxolearn/data/sparse_text.hpp"

using namespace taxolearn;

namespace {

SparseTextSettings form(SparseTextForm form, bool several_labels = false) {
  SparseTextSettings settings;
  settings.form = form;
  settings.several_labels = several_labels;
  return settings;
}

const SparseTextSettings svmlight = form(SparseTextForm::svmlight);
const SparseTextSettings lshtc = form(SparseTextForm::lshtc);
const SparseTextSettings vw = form(SparseTextForm::vw);

SparseTextRows read(const std::string& text, const SparseTextSettings& settings = svmlight, std::size_t block = 0) {
  SparseTextParser parser(settings);
  if (block == 0) block = text.size() + 1;
  for (std::size_t first = 0; first < text.size(); first += block) {
    const std::string piece = text.substr(first, block);  // memory of its own: an access outside of it is seen
    parser.feed(piece, Execution{});
  }
  return parser.finish(Execution{});
}

std::string error(const std::string& text, const SparseTextSettings& settings = svmlight) {
  try {
    read(text, settings);
  } catch (const InvalidArgument& thrown) {
    return thrown.what();
  }
  return "";
}

template <class T>
std::vector<T> list(const Buffer<T>& buffer) {
  return std::vector<T>(buffer.begin(), buffer.end());
}

using Values = std::vector<double>;
using Ids = std::vector<std::int64_t>;

struct Stopping : Monitor {
  bool interrupted() override { return true; }
};

}  // namespace

TEST_CASE("svmlight: labels, sorted ids, comments, blank lines, line ends") {
  const SparseTextRows rows = read("# head\n+1 3:4 1:-2.5 # tail\r\n\n  -1.5\t\n2 qid:7 0:1e2 7:.5#x\n0 5:6");
  CHECK(list(rows.labels) == Values{1, -1.5, 2, 0});
  CHECK(list(rows.offsets) == Ids{0, 2, 2, 4, 5});
  CHECK(list(rows.ids) == Ids{1, 3, 0, 7, 5});
  CHECK(list(rows.values) == Values{-2.5, 4, 100, 0.5, 6});
  CHECK(rows.smallest.id == 0);
  CHECK(rows.smallest.line == 5);
  CHECK(rows.smallest.column == 9);
  CHECK(rows.largest.id == 7);
  CHECK(rows.largest.line == 5);
  CHECK(rows.largest.column == 15);
}

TEST_CASE("an empty text has no rows") {
  for (const std::string text : {"", "\n\n", "# only this"}) {
    const SparseTextRows rows = read(text);
    CHECK(list(rows.offsets) == Ids{0});
    CHECK(rows.smallest.line == 0);
  }
}

TEST_CASE("several labels") {
  const SparseTextRows rows =
      read("1,5,7 2:3\n 4:1 6:1\n3, 2 1:1\n8\n", form(SparseTextForm::svmlight, /*several_labels=*/true));
  CHECK(list(rows.labels) == Values{1, 5, 7, 3, 2, 8});
  CHECK(list(rows.label_offsets) == Ids{0, 3, 3, 5, 6});
  CHECK(list(rows.ids) == Ids{2, 4, 6, 1});
  CHECK(error("1,5 2:3\n") == "line 1, column 2: several labels on a line are read with multilabel=True");
}

TEST_CASE("lshtc: the leading 0:N is not a word") {
  const SparseTextRows rows = read("29 0:197 7:1 3:2\n33 5:1\n", lshtc);
  CHECK(list(rows.ids) == Ids{3, 7, 5});
  CHECK(rows.totals[0] == 197);
  CHECK(std::isnan(rows.totals[1]));
  CHECK(error("29 7:1 0:197\n", lshtc).find("line 1, column 8: 0 is no word") == 0);
}

TEST_CASE("vw: weights, tags, namespaces, features without a value") {
  const SparseTextRows rows = read("541 | 3:8 1 2:6\n1 2.5 'tag|a:2 5:3|a 7\n-1 tag|\n", [] {
    SparseTextSettings settings = vw;
    settings.named_features = true;
    return settings;
  }());
  CHECK(list(rows.labels) == Values{541, 1, -1});
  CHECK(list(rows.weights) == Values{1, 2.5, 1});
  CHECK(rows.weighted);
  CHECK(list(rows.ids) == Ids{0, 1, 2, 3, 4});
  CHECK(list(rows.values) == Values{8, 1, 6, 6, 1});

  const SparseTextRows plain = read("541 |f 3:8 1 2:6\n1 |f\n", vw);
  CHECK(list(plain.ids) == Ids{1, 2, 3});
  CHECK(list(plain.values) == Values{1, 6, 8});
  CHECK_FALSE(plain.weighted);
}

TEST_CASE("vw: names become ids in order of appearance, or those of a given vocabulary") {
  SparseTextSettings settings = vw;
  settings.named_features = true;
  SparseTextParser parser(settings);
  parser.feed("1 |a x:2 y |b x\n2 | z |a y:3\n", Execution{});
  const SparseTextRows rows = parser.finish(Execution{});
  CHECK(parser.vocabulary() == std::deque<std::string>{"a^x", "a^y", "b^x", "z"});
  CHECK(list(rows.ids) == Ids{0, 1, 2, 1, 3});

  settings.fixed_vocabulary = true;
  SparseTextParser second(settings, {"z", "a^y"});
  second.feed("1 |a x:2 y |b x\n2 | z |a y:3\n", Execution{});
  const SparseTextRows known = second.finish(Execution{});
  CHECK(list(known.offsets) == Ids{0, 1, 3});
  CHECK(list(known.ids) == Ids{1, 0, 1});
  CHECK_THROWS_AS(SparseTextParser(settings, {"z", "z"}), InvalidArgument);
}

TEST_CASE("errors give line, column and what was expected") {
  CHECK(error("1 2:3\n1 2\n") ==
        "line 2, column 4: expected ':' and a value after the feature id, found the end of "
        "the line");
  CHECK(error("1 2:\r\n") == "line 1, column 5: expected a finite number, found the end of the line");
  CHECK(error("1 -2:1\n") == "line 1, column 3: expected a feature id:value, found '-2:1'");
  CHECK(error("1 2:x\n") == "line 1, column 5: expected a finite number, found 'x'");
  CHECK(error("1 2:1x 3:1\n") == "line 1, column 6: expected a blank after the value, found 'x'");
  CHECK(error("a 2:1\n") == "line 1, column 1: expected a label, which is a finite number, found 'a'");
  CHECK(error("nan 2:1\n").find("line 1, column 1: expected a label") == 0);
  CHECK(error("1 7:1 2:1 7:2\n") == "line 1, column 11: feature 7 occurs twice in the row, first at column 3");
  CHECK(error("1 9223372036854775807:1\n").find("line 1, column 3: feature id") == 0);
  CHECK(error("1 9223372036854775806:1\n").empty());
  CHECK(error(std::string("1 2:\0", 5)) == "line 1, column 5: expected a finite number, found '\\x00'");
  CHECK(error("1 2:3 \xff\xfe\n").find("found '\\xff\\xfe'") != std::string::npos);
  CHECK(error("1 2:3\r4:5\n").find("line 1, column 6") == 0);
  for (const std::string number : {"inf", "nan", "-inf", "1e", "1e+", ".", "+", "-", "", "0x10", "1e999", "--1"}) {
    CHECK_MESSAGE(error("1 2:1\n1 2:" + number + "\n").find("line 2, column ") == 0, number);
  }
  SparseTextSettings no_queries = svmlight;
  no_queries.query_ids = false;
  CHECK(error("1 qid:3 2:1\n", no_queries).find("line 1, column 3: query ids") == 0);
  CHECK(error("1 qid:x 2:1\n").find("line 1, column 7") == 0);
}

TEST_CASE("errors of vw") {
  CHECK(error("1| 2:3\n", vw).find("line 1, column 2: vw takes a label that touches") == 0);
  CHECK(error("1 2| 2:3\n", vw).find("line 1, column 3: vw takes a weight that touches") == 0);
  CHECK(error("1 2 3 | 2:3\n", vw).find("line 1, column 5: a weight came before") == 0);
  CHECK(error("1 -2 | 2:3\n", vw).find("line 1, column 3: a weight must not be negative") == 0);
  CHECK(error("1 2:3\n", vw).find("line 1, column 3: expected a weight, a tag or '|'") == 0);
  CHECK(error("1\n", vw) == "line 1, column 2: expected '|' before the features, found the end of the line");
  CHECK(error("| 2:3\n", vw).find("line 1, column 1: expected a label") == 0);
  CHECK(error("1 | word:3\n", vw).find("line 1, column 5: expected a feature index") == 0);
  CHECK(error("1 |a 1 |b 1\n", vw).find("line 1, column 8: namespaces 'a' and 'b'") == 0);
  CHECK(error("1 |a:1e308 1:1e308\n", vw).find("line 1, column 12: value times scale") == 0);
  CHECK(error("1 | 1 1\n", vw).find("line 1, column 7: feature 1 occurs twice") == 0);
}

TEST_CASE("numbers are the nearest doubles of their text") {
  std::mt19937_64 engine(7);
  std::ostringstream text;
  std::vector<std::string> numbers{"0",
                                   "-0",
                                   "9007199254740993",
                                   "9007199254740992.99999999999999999999",
                                   "179769313486231570e291",
                                   "2.2250738585072011e-308",
                                   "4.9e-324",
                                   "2e-324",
                                   "1e-400",
                                   "0.1e23",
                                   "1e22",
                                   "1e23",
                                   "123456789012345678901234567890",
                                   "0.000000000000000000000000000000000000001",
                                   "100000000000000000000000000000000000000e-38",
                                   "000000000000000000000000000000000000001.5",
                                   "1.",
                                   ".25",
                                   "+3"};
  for (int k = 0; k < 3000; ++k) {
    std::string number = (engine() % 2) != 0 ? "-" : "";
    const auto digits = 1 + engine() % 25;
    const auto point = engine() % (digits + 1);
    for (std::size_t i = 0; i < digits; ++i) {
      if (i == point) number += '.';
      number += static_cast<char>('0' + engine() % 10);
    }
    if (engine() % 2 != 0) number += "e" + std::to_string(static_cast<int>(engine() % 600) - 300);
    numbers.push_back(number);
  }
  std::vector<double> expected;
  text << "1";
  for (const std::string& number : numbers) {
    const double value = std::strtod(number.c_str(), nullptr);
    if (std::isinf(value)) continue;
    text << " " << expected.size() << ":" << number;
    expected.push_back(value);
  }
  CHECK(expected.size() > 2000);
  const SparseTextRows rows = read(text.str());
  CHECK(list(rows.values) == expected);
  CHECK(std::signbit(rows.values[1]));
}

TEST_CASE("blocks may be cut anywhere") {
  std::mt19937 engine(3);
  std::ostringstream text;
  std::vector<std::map<std::int64_t, double>> expected;
  for (int line = 0; line < 60; ++line) {
    std::map<std::int64_t, double> row;
    for (unsigned k = engine() % 6; k > 0; --k) row[engine() % 1000] = static_cast<double>(engine() % 100);
    std::vector<std::pair<std::int64_t, double>> shuffled(row.begin(), row.end());
    std::shuffle(shuffled.begin(), shuffled.end(), engine);
    text << line;
    for (const auto& [id, value] : shuffled) text << " " << id << ":" << value;
    text << (line % 3 == 0 ? "\r\n" : "\n");
    expected.push_back(row);
  }
  for (const std::size_t block : {1, 2, 3, 7, 64, 100000}) {
    const SparseTextRows rows = read(text.str(), svmlight, block);
    REQUIRE(rows.offsets.size() == expected.size() + 1);
    for (std::size_t line = 0; line < expected.size(); ++line) {
      CHECK(rows.labels[line] == static_cast<double>(line));
      auto k = static_cast<std::size_t>(rows.offsets[line]);
      CHECK(static_cast<std::size_t>(rows.offsets[line + 1]) - k == expected[line].size());
      for (const auto& [id, value] : expected[line]) {
        CHECK(rows.ids[k] == id);
        CHECK(rows.values[k++] == value);
      }
    }
  }
}

TEST_CASE("random bytes give rows or an error, never anything else") {
  std::mt19937 engine(11);
  const std::string alphabet = "0123456789  ::..,-+eE|#'\t\n\r\nqid:a\xff";
  int errors = 0;
  for (int round = 0; round < 20000; ++round) {
    std::string text;
    for (unsigned k = engine() % 30; k > 0; --k) text += alphabet[engine() % alphabet.size()];
    for (SparseTextSettings settings : {svmlight, lshtc, vw}) {
      settings.several_labels = round % 2 == 0;
      settings.named_features = round % 3 == 0;
      try {
        const SparseTextRows rows = read(text, settings, 1 + round % 9);
        CHECK(static_cast<std::size_t>(rows.offsets.back()) == rows.ids.size());
        CHECK(static_cast<std::size_t>(rows.label_offsets.back()) == rows.labels.size());
        CHECK(rows.values.size() == rows.ids.size());
      } catch (const InvalidArgument& thrown) {
        ++errors;
        CHECK(std::string(thrown.what()).find("line ") == 0);
      }
    }
  }
  CHECK(errors > 1000);
}

TEST_CASE("a monitor stops the reading within one long line") {
  std::string text = "1";
  for (int id = 0; id < 100000; ++id) text += " " + std::to_string(id) + ":1";
  text += "\n";
  Stopping monitor;
  SparseTextParser parser(svmlight);
  std::this_thread::sleep_for(Monitor::interval + std::chrono::milliseconds(5));
  CHECK_THROWS_AS(parser.feed(text, Execution{1, &monitor}), Interrupted);
}
