// Sparse rows from text, one row per line: svmlight, LSHTC and vw.
//
//   svmlight   label [qid:n] id:value id:value ... [# comment]
//   lshtc      label [0:total] id:value id:value ... [# comment]
//   vw         label [weight] ['tag]|[namespace[:scale]] name[:value] name[:value] ... [|namespace ...]
//
// Labels of several classes are joined by commas. The bytes are read once, in blocks cut anywhere, without regard to
// the locale. Numbers are the nearest doubles of their text; infinities and NaN are errors. Within a row the ids come
// out in rising order; an id given twice is an error. Every error names line and column (both from 1, in bytes).
#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

enum class SparseTextForm { svmlight, lshtc, vw };

struct SparseTextSettings {
  SparseTextForm form = SparseTextForm::svmlight;
  bool several_labels = false;    ///< any number of labels per line, even none, instead of exactly one
  bool query_ids = true;          ///< svmlight: skip qid:n instead of raising an error
  bool named_features = false;    ///< vw: features are known by namespace and name, instead of an integer id
  bool fixed_vocabulary = false;  ///< vw: leave out features whose name is not in the vocabulary
};

/// An id and where it stands. Line 0: there is none.
struct IdPlace {
  std::int64_t id = 0;
  Index line = 0;
  Index column = 0;
};

/// Row i holds ids[k], values[k] for offsets[i] <= k < offsets[i + 1], and likewise its labels.
struct SparseTextRows {
  Buffer<double> values;
  Buffer<std::int64_t> ids;
  Buffer<std::int64_t> offsets;
  Buffer<double> labels;
  Buffer<std::int64_t> label_offsets;
  Buffer<double> weights;  ///< vw: 1 where a line has none
  Buffer<double> totals;   ///< lshtc: NaN where a line has none
  bool weighted = false;   ///< whether any line has a weight
  IdPlace smallest;
  IdPlace largest;
};

/// A file as it comes in, block by block. Copies of its state make no sense, so there are none.
class SparseTextParser {
 public:
  /// The names of the vocabulary get the ids 0, 1, ... in order.
  explicit SparseTextParser(const SparseTextSettings& settings, const std::vector<std::string>& vocabulary = {});
  ~SparseTextParser();

  /// The next bytes of the file. After an exception the parser is of no further use.
  void feed(std::string_view text, const Execution& execution);

  /// Ends the file and hands over what has been read.
  SparseTextRows finish(const Execution& execution);

  /// Names of the features by id; empty unless features are named.
  const std::deque<std::string>& vocabulary() const;

 private:
  class Lines;
  std::unique_ptr<Lines> lines_;
  std::string carry_;  // the beginning of a line whose end has not come yet
};

}  // namespace taxolearn
