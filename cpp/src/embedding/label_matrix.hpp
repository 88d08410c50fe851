// The indicator matrix of labels, Y (n x C), less its weighted mean: products with it, by row and by class.
#pragma once

#include <cstdint>
#include <vector>

#include "taxolearn/embedding/problem.hpp"

namespace taxolearn {

class LabelMatrix {
 public:
  explicit LabelMatrix(const EmbeddingProblem& problem);

  Index rows() const { return static_cast<Index>(offsets_.size()) - 1; }
  Index classes() const { return static_cast<Index>(rows_of_.size()) - 1; }

  /// Weighted shares of the classes; zero if nothing is centred.
  const std::vector<double>& mean() const { return mean_; }

  /// Takes the mean with these weights, if Y is centred.
  void set_weights(const std::vector<double>& weights);

  /// out = (Y - mean) Q.
  template <class T>
  void expand(DenseView<const T> Q, DenseView<T> out, const Execution& execution) const;

  /// out = (Y - mean)^T E.
  template <class T>
  void project(DenseView<const T> E, DenseView<T> out, const Execution& execution) const;

 private:
  bool center_;
  std::vector<Index> offsets_;  ///< of rows
  std::vector<std::int32_t> labels_;
  std::vector<Index> rows_of_;  ///< offsets of classes
  std::vector<std::int32_t> members_;
  std::vector<double> mean_;
};

}  // namespace taxolearn
