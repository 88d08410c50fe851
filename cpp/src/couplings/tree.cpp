#include "taxolearn/couplings/tree.hpp"

#include <algorithm>
#include <cmath>

#include "taxolearn/base/check.hpp"
#include "tile.hpp"

namespace taxolearn {

TreeCoupling::TreeCoupling(std::shared_ptr<const Taxonomy> taxonomy, TiedVariances variances)
    : taxonomy_(std::move(taxonomy)), tied_(std::move(variances)) {
  require(taxonomy_ != nullptr, "the coupling has no taxonomy");
  require(static_cast<Index>(tied_.variances.size()) == taxonomy_->nodes(), "variances has ", tied_.variances.size(),
          " elements, expected ", taxonomy_->nodes(), ", one per node");
  tied_.variances[0] = 0.0;
  if (tied_.groups.empty()) tied_.groups.assign(tied_.variances.size(), 0);
  tied_.groups[0] = -1;
  tied_.check();
  for (const double variance : tied_.variances) {
    roots_.push_back(std::sqrt(variance));
    single_.push_back(static_cast<float>(variance));
  }
}

// Runs of leaves are short, so vectors run across rows: as many rows as a vector has elements go through the tree
// together, transposed into a tile with one vector per class.
template <class T>
void TreeCoupling::sweep(const T* variances, T* tile, T* sums) const {
  using P = Packet<T>;
  constexpr Index width = lanes<T>;
  const std::vector<Taxonomy::Branch>& branches = taxonomy_->branches();
  const Index inner = taxonomy_->inner();
  std::fill(sums, sums + inner * width, T(0));
  for (Index p = inner - 1; p > 0; --p) {
    const Taxonomy::Branch& branch = branches[static_cast<std::size_t>(p)];
    P sum = pload<P>(sums + p * width);
    for (Index c = branch.begin; c < branch.middle; ++c) sum = padd(sum, pload<P>(tile + c * width));
    T* const above = sums + branch.parent * width;
    pstore(above, padd(pload<P>(above), sum));
    pstore(sums + p * width, pmul(pset1<P>(variances[p]), sum));
  }
  std::fill(sums, sums + width, T(0));
  for (Index p = 0; p < inner; ++p) {
    const Taxonomy::Branch& branch = branches[static_cast<std::size_t>(p)];
    P above = pload<P>(sums + p * width);
    if (p > 0) {
      above = padd(above, pload<P>(sums + branch.parent * width));
      pstore(sums + p * width, above);
    }
    for (Index c = branch.begin; c < branch.middle; ++c) {
      T* const leaf = tile + c * width;
      pstore(leaf, pmadd(pset1<P>(variances[inner + c]), pload<P>(leaf), above));
    }
  }
}

template <class T>
void TreeCoupling::apply_rows(Index count, const T* variances, T* S) const {
  constexpr Index width = lanes<T>;
  thread_local Buffer<T> tile, sums;
  tile.resize(static_cast<std::size_t>(classes() * width));
  sums.resize(static_cast<std::size_t>(taxonomy_->inner() * width));
  for (Index i = 0; i < count; i += width) {
    const DenseView<T> rows(S + i * classes(), std::min(width, count - i), classes());
    const auto place = [](Index c) { return tile.data() + c * width; };
    to_tile<T>(rows, place);
    sweep(variances, tile.data(), sums.data());
    from_tile(place, rows);
  }
}

void TreeCoupling::apply(Index count, float* S) const { apply_rows(count, single_.data(), S); }
void TreeCoupling::apply(Index count, double* S) const { apply_rows(count, tied_.variances.data(), S); }

void TreeCoupling::to_factors(Index count, const double* S, double* out) const {
  const Index inner = taxonomy_->inner();
  thread_local Buffer<double> sums;
  sums.resize(static_cast<std::size_t>(inner));
  for (Index i = 0; i < count; ++i, S += classes(), out += factors()) {
    taxonomy_->add_up(S, sums.data());
    for (Index p = 1; p < inner; ++p)
      out[p - 1] = roots_[static_cast<std::size_t>(p)] * sums[static_cast<std::size_t>(p)];
    const double* const leaf_roots = roots_.data() + inner;
    double* const leaves = out + inner - 1;
    for (Index c = 0; c < classes(); ++c) leaves[c] = leaf_roots[c] * S[c];
  }
}

void TreeCoupling::from_factors(Index count, const double* A, double* out) const {
  const Index inner = taxonomy_->inner();
  thread_local Buffer<double> scratch;
  scratch.resize(static_cast<std::size_t>(inner));
  double* const above = scratch.data();
  for (Index i = 0; i < count; ++i, A += factors(), out += classes()) {
    const double* const leaf_roots = roots_.data() + inner;
    const double* const leaves = A + inner - 1;
    above[0] = 0.0;
    for (Index p = 0; p < inner; ++p) {
      const Taxonomy::Branch& branch = taxonomy_->branches()[static_cast<std::size_t>(p)];
      if (p > 0) above[p] = above[branch.parent] + roots_[static_cast<std::size_t>(p)] * A[p - 1];
      for (std::int32_t c = branch.begin; c < branch.middle; ++c) out[c] = above[p] + leaf_roots[c] * leaves[c];
    }
  }
}

void TreeCoupling::diag(double* out) const {
  const Index inner = taxonomy_->inner();
  std::vector<double> above(static_cast<std::size_t>(inner), 0.0);
  for (Index p = 0; p < taxonomy_->nodes(); ++p) {
    const double variance = tied_.variances[static_cast<std::size_t>(p)];
    const double sum = variance + (p > 0 ? above[static_cast<std::size_t>(taxonomy_->parent(p))] : 0.0);
    (p < inner ? above[static_cast<std::size_t>(p)] : out[p - inner]) = sum;
  }
}

void TreeCoupling::bilinear_grad(Index count, const double* E, const double* H, double* gradient) const {
  const Index inner = taxonomy_->inner();
  thread_local Buffer<double> left, right;
  left.resize(static_cast<std::size_t>(inner));
  right.resize(static_cast<std::size_t>(inner));
  const auto add = [&](Index node, double product) {
    const Index group = tied_.group(node);
    if (group >= 0) gradient[group] += tied_.variances[static_cast<std::size_t>(node)] * product;
  };
  for (Index i = 0; i < count; ++i, E += classes(), H += classes()) {
    taxonomy_->add_up(E, left.data());
    taxonomy_->add_up(H, right.data());
    for (Index p = 1; p < inner; ++p) add(p, left[static_cast<std::size_t>(p)] * right[static_cast<std::size_t>(p)]);
    for (Index c = 0; c < classes(); ++c) add(inner + c, E[c] * H[c]);
  }
}

}  // namespace taxolearn
