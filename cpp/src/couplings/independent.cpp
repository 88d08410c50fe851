#include "taxolearn/couplings/independent.hpp"

#include <algorithm>
#include <cmath>

#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

/// out[i, c] = factors[c] S[i, c].
template <class T>
void scale_columns(Index count, const std::vector<double>& factors, const T* S, T* out) {
  const Index classes = static_cast<Index>(factors.size());
  for (Index i = 0; i < count; ++i, S += classes, out += classes)
    for (Index c = 0; c < classes; ++c) out[c] = static_cast<T>(factors[static_cast<std::size_t>(c)] * S[c]);
}

}  // namespace

IndependentCoupling::IndependentCoupling(TiedVariances variances) : tied_(std::move(variances)) {
  require(!tied_.variances.empty(), "variances is empty, expected one per class");
  tied_.check();
  for (const double variance : tied_.variances) roots_.push_back(std::sqrt(variance));
}

void IndependentCoupling::apply(Index count, float* S) const { scale_columns(count, tied_.variances, S, S); }
void IndependentCoupling::apply(Index count, double* S) const { scale_columns(count, tied_.variances, S, S); }

void IndependentCoupling::to_factors(Index count, const double* S, double* out) const {
  scale_columns(count, roots_, S, out);
}

void IndependentCoupling::from_factors(Index count, const double* A, double* out) const {
  scale_columns(count, roots_, A, out);
}

void IndependentCoupling::diag(double* out) const { std::copy(tied_.variances.begin(), tied_.variances.end(), out); }

void IndependentCoupling::bilinear_grad(Index count, const double* E, const double* H, double* gradient) const {
  for (Index i = 0; i < count; ++i, E += classes(), H += classes()) {
    for (Index c = 0; c < classes(); ++c) {
      const Index group = tied_.group(c);
      if (group >= 0) gradient[group] += tied_.variances[static_cast<std::size_t>(c)] * E[c] * H[c];
    }
  }
}

}  // namespace taxolearn
