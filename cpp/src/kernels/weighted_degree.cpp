// The weighted degree kernel (Rätsch and Sonnenburg 2004): substrings that two sequences have at the same places.

#include "base.hpp"
#include "sequences.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/kernels/functions.hpp"

namespace taxolearn {
namespace {

/// What a place counts at which the last r letters are equal, by r; beyond its end as at its end.
using RunWeights = std::vector<double>;

struct WeightedDegreeParameters {
  RunWeights weights;
  bool normalized;
  double variance;

  double value(const Sequences& left, Index i, const Sequences& right, Index j) const {
    const Index length = std::min(left.length(i), right.length(j));
    const std::size_t longest = weights.size() - 1;
    const std::int32_t* const x = left.codes(i);
    const std::int32_t* const y = right.codes(j);
    double sum = 0.0;
    std::size_t run = 0;
    for (Index k = 0; k < length; ++k) {
      run = x[k] == y[k] ? std::min(run + 1, longest) : 0;
      sum += weights[run];
    }
    return sum;
  }

  /// 1 / sqrt(k(x, x)), 0 where that is 0, or 1 if nothing is normalized.
  std::vector<double> factors(const Sequences& sequences) const {
    std::vector<double> out(static_cast<std::size_t>(sequences.count()), 1.0);
    for (Index i = 0; i < sequences.count() && normalized; ++i) {
      const double self = value(sequences, i, sequences, i);
      out[static_cast<std::size_t>(i)] = self > 0.0 ? 1.0 / std::sqrt(self) : 0.0;
    }
    return out;
  }
};

template <class T>
class WeightedDegreeEntries final : public SymmetricEntries<T> {
 public:
  WeightedDegreeEntries(const WeightedDegreeParameters& parameters, const InputRows& left, const InputRows& right)
      : SymmetricEntries<T>(&left == &right), parameters_(parameters), rows_(left, right) {
    left_ = parameters_.factors(rows_.left());
    right_ = rows_.same() ? left_ : parameters_.factors(rows_.right());
  }

  void gradient(Index i, Index j, DenseView<const double> Q, double* gradient) const override {
    for (Index a = 0; a < Q.rows; ++a) {
      for (Index b = 0; b < Q.cols; ++b) gradient[0] += Q.row(a)[b] * value(i + a, j + b);
    }
  }

 protected:
  void compute(Index i, Index j, DenseView<T> out) const override {
    for (Index a = 0; a < out.rows; ++a) {
      for (Index b = 0; b < out.cols; ++b) out.row(a)[b] = static_cast<T>(value(i + a, j + b));
    }
  }

 private:
  double value(Index i, Index j) const {
    return parameters_.variance * left_[static_cast<std::size_t>(i)] * right_[static_cast<std::size_t>(j)] *
           parameters_.value(rows_.left(), i, rows_.right(), j);
  }

  WeightedDegreeParameters parameters_;
  SequencePair rows_;
  std::vector<double> left_;
  std::vector<double> right_;
};

class WeightedDegreeKernel final : public KernelBase<WeightedDegreeKernel> {
 public:
  explicit WeightedDegreeKernel(WeightedDegreeParameters parameters) : parameters_(std::move(parameters)) {}

  Index parameters() const override { return 1; }

  void diag(const InputRows& rows, double* out) const override {
    const Sequences sequences("selected", rows);
    const std::vector<double> factors = parameters_.factors(sequences);
    for (Index i = 0; i < sequences.count(); ++i) {
      const double factor = factors[static_cast<std::size_t>(i)];
      out[i] = parameters_.variance * factor * factor * parameters_.value(sequences, i, sequences, i);
    }
  }

  void diag_gradient(const InputRows& rows, const double* q, double* gradient) const override {
    std::vector<double> values(static_cast<std::size_t>(rows.count()));
    diag(rows, values.data());
    gradient[0] += dot_block(q, values.data(), rows.count());
  }

  template <class T>
  std::unique_ptr<KernelEntries<T>> entries(const InputRows& left, const InputRows& right, const Execution&) const {
    return std::make_unique<WeightedDegreeEntries<T>>(parameters_, left, right);
  }

 private:
  WeightedDegreeParameters parameters_;
};

}  // namespace

std::shared_ptr<const Kernel> make_weighted_degree_kernel(const std::vector<int>& lengths, bool normalized,
                                                          double variance) {
  require_lengths(lengths);
  require_positive("variance", variance);
  const int largest = *std::max_element(lengths.begin(), lengths.end());
  RunWeights weights(static_cast<std::size_t>(largest) + 1, 0.0);
  for (const int length : lengths) {
    const double weight = 2.0 * (largest - length + 1) / (static_cast<double>(largest) * (largest + 1));
    for (int run = length; run <= largest; ++run) weights[static_cast<std::size_t>(run)] += weight;
  }
  return std::make_shared<WeightedDegreeKernel>(WeightedDegreeParameters{std::move(weights), normalized, variance});
}

}  // namespace taxolearn
