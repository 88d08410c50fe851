// Folds of cross-validation.
#pragma once

#include <vector>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

struct Folds {
  std::vector<Index> of_row;  ///< the fold in which a row is held out; -1: in none
  Index count = 0;

  Index rows() const { return static_cast<Index>(of_row.size()); }
  std::vector<Index> held_out(Index fold) const;
  std::vector<Index> trained(Index fold) const;
};

}  // namespace taxolearn
