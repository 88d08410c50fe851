// Counts of known terms in texts, as scikit-learn's vectorizers count them: sequences of words, or of characters within
// words.
//
// Texts are UTF-8 (lone surrogates may be in it). Words are what stands between white space, in the sense of Python's
// str.split. A sequence of words is the text from the first to the last of them, so between words there must be one
// blank. For sequences of characters each word gets a blank in front and behind; one shorter than a sequence counts
// once, as a whole, for the shortest such length only.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

/// Terms and their numbers, for looking up only.
class Vocabulary {
 public:
  /// Term k has the number k. Terms must differ.
  explicit Vocabulary(const std::vector<std::string_view>& terms);

  /// The number of a term, -1 if it is unknown.
  std::int32_t find(std::string_view term) const;
  std::size_t size() const { return offsets_.size() - 1; }

 private:
  struct Slot {
    std::uint32_t tag = 0;  ///< of the hash
    std::int32_t term = -1;
  };
  std::string bytes_;
  std::vector<std::size_t> offsets_;
  std::vector<Slot> slots_;  ///< a power of two, at most half of them taken
};

enum class TermUnit { words, characters };

/// Row i has terms[k] counts[k] times for offsets[i] <= k < offsets[i + 1], in rising order.
struct TermCounts {
  Buffer<std::int32_t> terms;
  Buffer<float> counts;
  Buffer<std::int64_t> offsets;
};

/// Occurrences of the terms of a vocabulary in each text: sequences of `shortest` to `longest` units.
TermCounts count_terms(const Vocabulary& vocabulary, const std::vector<std::string_view>& texts, TermUnit unit,
                       int shortest, int longest, const Execution& execution);

}  // namespace taxolearn
