// Products X^T S for those who need no more than the sums of some features at a time.
#pragma once

#include <functional>

#include "taxolearn/data/input.hpp"

namespace taxolearn {

/// X^T S for one matrix X, sparse with sorted rows or dense, in parts of so many features: take(first feature, rows), which
/// may overwrite them. Calls run at the same time, in any order. Parts and sums are the same for any number of threads.
void project_parts(const InputView& X, DenseView<const double> S, Index features_per_part,
                   const std::function<void(Index, DenseView<double>)>& take, const Execution& execution);

}  // namespace taxolearn
