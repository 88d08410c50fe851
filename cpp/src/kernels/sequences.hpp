// Rows of the inputs that are sequences of letters: entry k of a sparse row is the code of letter k.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "taxolearn/kernels/kernel.hpp"

namespace taxolearn {

/// The codes of selected rows, one sequence after the other. Equal letters have equal codes, which are positive.
class Sequences {
 public:
  /// Throws InvalidArgument, which calls the rows by this name, unless they are sequences.
  Sequences(const char* name, const InputRows& rows);

  Index count() const { return static_cast<Index>(offsets_.size()) - 1; }
  Index length(Index i) const { return offset(i + 1) - offset(i); }
  const std::int32_t* codes(Index i) const { return codes_.data() + offset(i); }

  /// Where sequence i starts among all letters.
  Index offset(Index i) const { return offsets_[static_cast<std::size_t>(i)]; }
  const std::vector<std::int32_t>& letters() const { return codes_; }

 private:
  std::vector<std::int32_t> codes_;
  std::vector<Index> offsets_;
};

/// Throws InvalidArgument unless there are lengths of substrings, all from 1 to 1000.
void require_lengths(const std::vector<int>& lengths);

/// The sequences of both sides of a matrix, held once if these are the same object.
class SequencePair {
 public:
  SequencePair(const InputRows& left, const InputRows& right) : left_("left", left) {
    if (&left != &right) right_.emplace("right", right);
  }

  bool same() const { return !right_.has_value(); }
  const Sequences& left() const { return left_; }
  const Sequences& right() const { return same() ? left_ : *right_; }

 private:
  Sequences left_;
  std::optional<Sequences> right_;
};

}  // namespace taxolearn
