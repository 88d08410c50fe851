#include "taxolearn/operators/subset.hpp"

#include "taxolearn/base/check.hpp"

namespace taxolearn {

void require_subset(const std::vector<Index>& rows, Index n) {
  require(!rows.empty(), "rows is empty, expected at least one row to select");
  std::vector<char> seen(static_cast<std::size_t>(n), 0);
  for (const Index i : rows) {
    require(i >= 0 && i < n, "rows contains ", i, ", expected indices in [0, ", n, ")");
    require(seen[static_cast<std::size_t>(i)] == 0, "rows contains ", i, " twice");
    seen[static_cast<std::size_t>(i)] = 1;
  }
}

InputRows subset_of(const InputRows& rows, const std::vector<Index>& chosen) {
  require_subset(chosen, rows.count());
  InputRows out{rows.X, {}};
  out.selected.reserve(chosen.size());
  for (const Index i : chosen) out.selected.push_back(rows.source(i));
  return out;
}

}  // namespace taxolearn
