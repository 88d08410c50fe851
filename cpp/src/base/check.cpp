#include "taxolearn/base/check.hpp"

namespace taxolearn {

template <class Value, class Column>
void require_valid(const char* name, const SparseView<Value, Column>& view) {
  require(view.rows >= 0 && view.cols >= 0, name, " has shape (", view.rows, ", ", view.cols, ")");
  if (view.rows == 0) return;
  require(view.offsets[0] == 0, name, ": indptr starts at ", view.offsets[0], ", expected 0");
  // All offsets before any entry: an offset that falls later may have pointed past the end.
  for (Index i = 0; i < view.rows; ++i) {
    require(view.offsets[i] <= view.offsets[i + 1], name, ": indptr falls from ", view.offsets[i], " to ",
            view.offsets[i + 1], " at row ", i);
  }
  for (Index i = 0; i < view.rows; ++i) {
    Column last = 0;
    for (Column k = view.offsets[i]; k < view.offsets[i + 1]; ++k) {
      const Column column = view.columns[k];
      require(column >= 0 && static_cast<Index>(column) < view.cols, name, ": column index ", column, " in row ", i,
              " is out of range for shape (", view.rows, ", ", view.cols, ")");
      require(column >= last, name, ": column indices of row ", i, " are not sorted (", column, " follows ", last,
              "); call sort_indices() first");
      last = column;
    }
  }
}

template void require_valid(const char*, const SparseView<float, std::int32_t>&);
template void require_valid(const char*, const SparseView<float, std::int64_t>&);
template void require_valid(const char*, const SparseView<double, std::int32_t>&);
template void require_valid(const char*, const SparseView<double, std::int64_t>&);

}  // namespace taxolearn
