#include "taxolearn/select/folds.hpp"

namespace taxolearn {
namespace {

template <class Wanted>
std::vector<Index> rows_where(const std::vector<Index>& of_row, const Wanted& wanted) {
  std::vector<Index> out;
  for (std::size_t i = 0; i < of_row.size(); ++i) {
    if (wanted(of_row[i])) out.push_back(static_cast<Index>(i));
  }
  return out;
}

}  // namespace

std::vector<Index> Folds::held_out(Index fold) const {
  return rows_where(of_row, [fold](Index own) { return own == fold; });
}

std::vector<Index> Folds::trained(Index fold) const {
  return rows_where(of_row, [fold](Index own) { return own != fold; });
}

}  // namespace taxolearn
