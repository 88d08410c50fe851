#include "sequences.hpp"

#include "rows.hpp"
#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

constexpr double largest_code = 16777216.0;  // 2^24: every whole number up to there is one in single precision

template <class V, class I>
void append(const char* name, const SparseView<V, I>& X, const InputRows& rows, std::vector<std::int32_t>& codes,
            std::vector<Index>& offsets) {
  for (Index i = 0; i < rows.count(); ++i) {
    const Index row = rows.source(i);
    Index place = 0;
    for (I k = X.offsets[row]; k < X.offsets[row + 1]; ++k, ++place) {
      const double code = static_cast<double>(X.values[k]);
      require(static_cast<Index>(X.columns[k]) == place, name, " row ", row, " is no sequence: entry ", place,
              " is in column ", X.columns[k], ", expected the codes of its letters in the first columns");
      require(code >= 1.0 && code <= largest_code && code == static_cast<double>(static_cast<std::int32_t>(code)), name,
              " row ", row, " is no sequence: letter ", place, " has the code ", code,
              ", expected a whole number from 1 to 16777216");
      codes.push_back(static_cast<std::int32_t>(code));
    }
    offsets.push_back(static_cast<Index>(codes.size()));
  }
}

template <class V>
void append(const char* name, const DenseView<const V>&, const InputRows&, std::vector<std::int32_t>&,
            std::vector<Index>&) {
  require(false, "the ", name, " rows are dense, but a string kernel reads sequences: sparse rows of letters' codes");
}

void append(const char*, const BlockedView&, const InputRows&, std::vector<std::int32_t>&, std::vector<Index>&) {}

}  // namespace

Sequences::Sequences(const char* name, const InputRows& rows) : offsets_{0} {
  require_rows(name, rows);
  offsets_.reserve(static_cast<std::size_t>(rows.count()) + 1);
  std::visit([&](const auto& X) { append(name, X, rows, codes_, offsets_); }, rows.X);
}

void require_lengths(const std::vector<int>& lengths) {
  require(!lengths.empty(), "lengths is empty, expected at least one length");
  for (const int length : lengths)
    require(length >= 1 && length <= 1000, "lengths holds ", length, ", expected 1 to 1000");
}

}  // namespace taxolearn
