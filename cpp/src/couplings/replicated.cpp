#include "taxolearn/couplings/replicated.hpp"

#include <algorithm>

namespace taxolearn {

void ReplicatedCoupling::diag(double* out) const {
  inner_.diag(out);
  for (Index k = 1; k < copies_; ++k) std::copy(out, out + inner_.classes(), out + k * inner_.classes());
}

}  // namespace taxolearn
