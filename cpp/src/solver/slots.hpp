// What the minimizers share: combinations of slots, and inner products between these.
#pragma once

#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/solver/minimize.hpp"

namespace taxolearn {

/// Of a combination of slots.
using Coefficients = std::vector<double>;

inline Coefficients unit(int slots, int k, double value = 1.0) {
  Coefficients c(static_cast<std::size_t>(slots), 0.0);
  c[static_cast<std::size_t>(k)] = value;
  return c;
}

inline void add(double a, const Coefficients& x, Coefficients& y) {
  axpy_block(a, x.data(), y.data(), static_cast<Index>(y.size()));
}

/// Inner products between slots, kept up to date as slots change.
class Gram {
 public:
  explicit Gram(int slots) : values_(slots, slots), filled_(static_cast<std::size_t>(slots), 0) {}

  /// The slot was written anew: ask the space for its row.
  void measure(SearchSpace& space, int slot) {
    filled_[static_cast<std::size_t>(slot)] = 1;
    std::vector<int> others;
    for (int k = 0; k < values_.rows(); ++k) {
      if (filled_[static_cast<std::size_t>(k)] != 0) others.push_back(k);
    }
    const std::vector<double> row = space.inner(slot, others);
    for (std::size_t k = 0; k < others.size(); ++k) {
      values_.row(slot)[others[k]] = row[k];
      values_.row(others[k])[slot] = row[k];
    }
  }

  /// The slot became the combination c: its row follows from the others, without touching a vector.
  void combine(int slot, const Coefficients& c) {
    const Coefficients row = times(c);
    const double square = dot_block(c.data(), row.data(), values_.rows());
    for (Index k = 0; k < values_.rows(); ++k) {
      values_.row(slot)[k] = values_.row(k)[slot] = row[static_cast<std::size_t>(k)];
    }
    values_.row(slot)[slot] = square;
    filled_[static_cast<std::size_t>(slot)] = 1;
  }

  double operator()(const Coefficients& a, const Coefficients& b) const {
    return dot_block(a.data(), times(b).data(), values_.rows());
  }
  double operator()(int a, int b) const { return values_.row(a)[b]; }

 private:
  Coefficients times(const Coefficients& c) const {
    Coefficients out;
    for (Index k = 0; k < values_.rows(); ++k) out.push_back(dot_block(values_.row(k), c.data(), values_.cols()));
    return out;
  }

  Matrix<double> values_;
  std::vector<char> filled_;
};

inline MinimizeResult start(SearchSpace& space, Gram& gram, int gradient) {
  MinimizeResult result;
  result.objective = space.advance(0.0, gradient);
  gram.measure(space, gradient);
  result.gap = 0.5 * gram(gradient, gradient);
  return result;
}

/// Move along the direction and take the new gradient: the part that both methods share. False if there is no step.
inline bool take_step(SearchSpace& space, Gram& gram, double step, int gradient, MinimizeResult& result) {
  if (step == 0.0) return false;
  result.objective = space.advance(step, gradient);
  gram.measure(space, gradient);
  result.gap = 0.5 * gram(gradient, gradient);
  ++result.iterations;
  return true;
}

}  // namespace taxolearn
