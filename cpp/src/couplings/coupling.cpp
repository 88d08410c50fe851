#include "taxolearn/couplings/coupling.hpp"

#include <algorithm>
#include <cmath>

#include "taxolearn/base/check.hpp"

namespace taxolearn {

void Coupling::factor_grad(const double* products, double* gradient) const {
  for (const Index parameter : parameter_of_factor()) {
    const double product = *products++;
    if (parameter >= 0) gradient[parameter] += product;
  }
}

void TiedVariances::check() const {
  const Index size = static_cast<Index>(variances.size());
  require(groups.empty() || static_cast<Index>(groups.size()) == size, "groups has ", groups.size(),
          " elements, expected ", size);
  for (Index k = 0; k < size; ++k) {
    const double variance = variances[static_cast<std::size_t>(k)];
    require(std::isfinite(variance) && variance >= 0.0, "variances[", k, "] is ", variance,
            ", expected a finite number of at least 0");
    require(group(k) >= -1 && group(k) < size, "groups[", k, "] is ", group(k), ", expected -1 or a number below ",
            size);
  }
}

Index TiedVariances::parameters() const {
  if (variances.empty()) return 0;
  return groups.empty() ? 1 : *std::max_element(groups.begin(), groups.end()) + 1;
}

std::vector<Index> TiedVariances::groups_from(Index first) const {
  std::vector<Index> out;
  for (Index k = first; k < static_cast<Index>(variances.size()); ++k) out.push_back(group(k));
  return out;
}

}  // namespace taxolearn
