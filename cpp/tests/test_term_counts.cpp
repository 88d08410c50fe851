#include <doctest/doctest.h>

#include <map>
#include <random>
#include <set>
#include <stdexcept>
#include <string>

#include "taxolearn/data/term_counts.hpp"

using namespace taxolearn;

namespace {

std::vector<std::string_view> views(const std::vector<std::string>& texts) { return {texts.begin(), texts.end()}; }

/// Sequences of characters of words of single bytes, one by one.
std::map<std::string, int> slow_characters(const std::string& text, int shortest, int longest) {
  std::map<std::string, int> counts;
  std::size_t begin = 0;
  while ((begin = text.find_first_not_of(' ', begin)) != std::string::npos) {
    const std::size_t end = std::min(text.find(' ', begin), text.size());
    const std::string word = " " + text.substr(begin, end - begin) + " ";
    for (int length = shortest; length <= longest; ++length) {
      const int places = static_cast<int>(word.size()) - length + 1;
      for (int k = 0; k < std::max(places, 1); ++k) ++counts[word.substr(static_cast<std::size_t>(k), length)];
      if (places <= 1) break;
    }
    begin = end;
  }
  return counts;
}

}  // namespace

TEST_CASE("a vocabulary finds its terms and no others") {
  std::mt19937 random(0);
  std::set<std::string> known;
  while (known.size() < 3000) {
    std::string term(random() % 20, ' ');
    for (char& c : term) c = static_cast<char>(random() % 256);
    known.insert(term);
  }
  const std::vector<std::string> terms(known.begin(), known.end());
  const Vocabulary vocabulary(views(terms));
  CHECK(vocabulary.size() == terms.size());
  for (std::size_t k = 0; k < terms.size(); ++k) {
    CHECK(vocabulary.find(terms[k]) == static_cast<int>(k));
    const std::string other = terms[k] + "x";
    if (known.count(other) == 0) CHECK(vocabulary.find(other) == -1);
  }
  CHECK(Vocabulary({}).find("a") == -1);
  CHECK_THROWS_AS(Vocabulary({"a", "b", "a"}), std::invalid_argument);
}

TEST_CASE("sequences of characters are counted as one by one, on any number of threads") {
  std::mt19937 random(1);
  std::vector<std::string> texts(1000);
  std::set<std::string> all;
  for (std::string& text : texts) {
    for (unsigned k = random() % 30; k > 0; --k) text.push_back("ab  "[random() % 4]);
    for (const auto& [term, count] : slow_characters(text, 2, 4)) {
      if (random() % 2 == 0) all.insert(term);
    }
  }
  const std::vector<std::string> terms(all.begin(), all.end());
  const Vocabulary vocabulary(views(terms));
  for (const int threads : {1, 3}) {
    const TermCounts found = count_terms(vocabulary, views(texts), TermUnit::characters, 2, 4, Execution{threads});
    REQUIRE(found.offsets.size() == texts.size() + 1);
    for (std::size_t i = 0; i < texts.size(); ++i) {
      std::map<std::string, int> counts;
      for (auto k = found.offsets[i]; k < found.offsets[i + 1]; ++k)
        counts[terms[static_cast<std::size_t>(found.terms[k])]] = static_cast<int>(found.counts[k]);
      std::map<std::string, int> expected;
      for (const auto& [term, count] : slow_characters(texts[i], 2, 4)) {
        if (all.count(term) > 0) expected[term] = count;
      }
      CHECK(counts == expected);
    }
  }
}

TEST_CASE("sequences of words are pieces of the text") {
  const std::vector<std::string> terms{"b", "b c", "c", "a b c"};
  const std::vector<std::string> texts{"a b c", "b", "", "c b c b c"};
  const TermCounts found = count_terms(Vocabulary(views(terms)), views(texts), TermUnit::words, 1, 3, Execution{});
  CHECK(std::vector<int>(found.terms.begin(), found.terms.end()) == std::vector<int>{0, 1, 2, 3, 0, 0, 1, 2});
  CHECK(std::vector<float>(found.counts.begin(), found.counts.end()) == std::vector<float>{1, 1, 1, 1, 1, 2, 2, 3});
  CHECK(std::vector<int>(found.offsets.begin(), found.offsets.end()) == std::vector<int>{0, 4, 5, 5, 8});
}
