#include <cmath>
#include <limits>

#include "base.hpp"
#include "rows.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/kernels/functions.hpp"

namespace taxolearn {
namespace {

constexpr Index tile = 64;
constexpr double asymmetry_allowed = 1e-5;  // of the largest entry

void require_dense(const InputRows& rows) {
  require_rows("selected", rows);
  require(!is_sparse(rows.X), "a precomputed kernel matrix must be dense, got a sparse matrix of shape (",
          input_rows(rows.X), ", ", input_features(rows.X), "); convert it with toarray()");
}

void require_square(const InputRows& rows) {
  require(input_rows(rows.X) == input_features(rows.X),
          "the precomputed kernel matrix of the training rows has shape (", input_rows(rows.X), ", ",
          input_features(rows.X), "), expected a square matrix");
}

/// body(dense view) in the precision of the inputs.
template <class Body>
void visit_dense(const InputView& X, const Body& body) {
  if (const auto* single = std::get_if<DenseView<const float>>(&X)) {
    body(*single);
  } else {
    body(std::get<DenseView<const double>>(X));
  }
}

template <class V>
void require_symmetric(const DenseView<const V>& X, const InputRows& rows, const Execution& execution) {
  const Blocks blocks(rows.count(), tile);
  const auto number = static_cast<std::size_t>(blocks.number());
  std::vector<double> largest(number, 0.0), worst(number, 0.0);
  std::vector<std::pair<Index, Index>> place(number);
  parallel_for(blocks.number(), execution, [&](Index block) {
    const auto at = static_cast<std::size_t>(block);
    const auto compare = [&](Index i, Index j) {
      const Index a = rows.source(i), b = rows.source(j);
      const double lower = static_cast<double>(X.row(a)[b]), upper = static_cast<double>(X.row(b)[a]);
      largest[at] = std::max(largest[at], std::abs(lower));
      const double difference = std::abs(lower - upper);
      if (difference <= worst[at]) return;
      worst[at] = std::isnan(difference) ? std::numeric_limits<double>::infinity() : difference;
      place[at] = {a, b};
    };
    for (Index other = 0; other <= block; ++other) {
      for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
        const Index end = std::min(blocks.first(other) + blocks.length(other), i + 1);
        for (Index j = blocks.first(other); j < end; ++j) compare(i, j);
      }
    }
  });
  const double allowed = number > 0 ? asymmetry_allowed * *std::max_element(largest.begin(), largest.end()) : 0.0;
  for (std::size_t at = 0; at < number; ++at) {
    const auto [a, b] = place[at];
    require(std::isfinite(worst[at]) && worst[at] <= allowed,
            "the precomputed kernel matrix is not symmetric and finite: entry (", a, ", ", b, ") is ", X.row(a)[b],
            ", entry (", b, ", ", a, ") is ", X.row(b)[a]);
  }
}

template <class T>
class PrecomputedEntries final : public SymmetricEntries<T> {
 public:
  PrecomputedEntries(double variance, const InputRows& left, const InputRows& right, const Execution& execution)
      : SymmetricEntries<T>(&left == &right), variance_(variance), left_(left), right_(right) {
    require_dense(right);
    require_dense(left);
    require_square(right);
    require(input_features(left.X) == input_rows(right.X), "the rows of the precomputed kernel matrix have ",
            input_features(left.X), " columns, expected ", input_rows(right.X), ", one per training row");
    require_rows("left", left);
    require_rows("right", right);
    if (&left == &right) visit_dense(left.X, [&](const auto& X) { require_symmetric(X, left, execution); });
  }

  void gradient(Index i, Index j, DenseView<const double> Q, double* gradient) const override {
    double sum = 0.0;
    Scratch<T> values(Q.rows, Q.cols);
    this->block(i, j, values.view());
    for (Index a = 0; a < Q.rows; ++a) sum += dot_block(Q.row(a), values.row(a), Q.cols);
    gradient[0] += sum;
  }

 protected:
  void compute(Index i, Index j, DenseView<T> out) const override {
    visit_dense(left_.X, [&](const auto& X) {
      for (Index a = 0; a < out.rows; ++a) {
        const auto* const row = X.row(left_.source(i + a));
        for (Index b = 0; b < out.cols; ++b) {
          out.row(a)[b] = static_cast<T>(variance_ * static_cast<double>(row[right_.source(j + b)]));
        }
      }
    });
  }

 private:
  double variance_;
  InputRows left_;
  InputRows right_;
};

class PrecomputedKernel final : public KernelBase<PrecomputedKernel> {
 public:
  explicit PrecomputedKernel(double variance) : variance_(variance) {}

  Index parameters() const override { return 1; }

  void diag(const InputRows& rows, double* out) const override {
    require_dense(rows);
    require_square(rows);
    require_rows("selected", rows);
    visit_dense(rows.X, [&](const auto& X) {
      for (Index i = 0; i < rows.count(); ++i) {
        out[i] = variance_ * static_cast<double>(X.row(rows.source(i))[rows.source(i)]);
      }
    });
  }

  void diag_gradient(const InputRows& rows, const double* q, double* gradient) const override {
    std::vector<double> values(static_cast<std::size_t>(rows.count()));
    diag(rows, values.data());
    gradient[0] += dot_block(q, values.data(), rows.count());
  }

  template <class T>
  std::unique_ptr<KernelEntries<T>> entries(const InputRows& left, const InputRows& right,
                                            const Execution& execution) const {
    return std::make_unique<PrecomputedEntries<T>>(variance_, left, right, execution);
  }

 private:
  double variance_;
};

}  // namespace

std::shared_ptr<const Kernel> make_precomputed_kernel(double variance) {
  require_positive("variance", variance);
  return std::make_shared<PrecomputedKernel>(variance);
}

}  // namespace taxolearn
