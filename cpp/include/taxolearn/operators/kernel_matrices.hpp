// The kernel matrices M_0 .. M_{L-1} of a model over the same inputs, and how products with them are done:
//
//   gram      stored, two to an n x n square: 2 n^2 flops per column
//   tiled     computed anew, tile by tile, for every product: next to no memory
//   low_rank  L L^T + diagonal by an incomplete Cholesky factorization: n r numbers; an approximation, used
//             only on request
//
// Of a sum over blocks of the inputs, some of them linear, tiled and low_rank are for the others (block_sum.hpp).
// Automatic means gram where it fits into the memory granted, else tiled.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "taxolearn/kernels/kernel.hpp"
#include "taxolearn/operators/low_rank.hpp"
#include "taxolearn/operators/operator.hpp"

namespace taxolearn {

enum class KernelAlgorithm { automatic, gram, tiled, low_rank };

struct KernelSettings {
  KernelAlgorithm algorithm = KernelAlgorithm::automatic;
  double memory_limit = 4e9;  ///< bytes that stored matrices may take
  Index rank = 0;             ///< of low_rank, at most; 0: as the tolerance asks
  double tolerance = 1e-3;    ///< of low_rank: share of the trace that may be missing
};

/// What is asked for: a rank or a tolerance means low_rank, unless another algorithm is named. A rank alone is taken as
/// it is; a tolerance alone finds its rank.
KernelSettings make_kernel_settings(KernelAlgorithm algorithm, double memory_limit, std::optional<Index> rank,
                                    std::optional<double> tolerance);

template <class T>
using Operators = std::vector<std::unique_ptr<Operator<T>>>;

class KernelMatrices {
 public:
  /// A view: the inputs must outlive it. Nothing is computed yet.
  KernelMatrices(std::vector<std::shared_ptr<const Kernel>> kernels, const InputView& X,
                 const KernelSettings& settings);

  Index rows() const { return input_rows(X_); }
  Index count() const { return static_cast<Index>(kernels_.size()); }
  const InputView& inputs() const { return X_; }
  const std::vector<std::shared_ptr<const Kernel>>& kernels() const { return kernels_; }

  /// Flops of a product per column, about.
  double work() const;

  /// One operator per kernel, in precision T, for the products of the iterations. Kept until another precision is asked
  /// for, so that only one copy of a stored matrix lives at a time.
  template <class T>
  const Operators<T>& operators(const Execution& execution);

  /// The same for some rows of the inputs, in this order. They may share what operators() keeps: stored matrices stay
  /// alive as long as one of them.
  template <class T>
  Operators<T> subset(const std::vector<Index>& rows, const Execution& execution);

  /// Operators in double precision that need no stored matrix beyond those that are there already.
  const Operators<double>& certifying_operators(const Execution& execution);

  /// The factorizations, under low_rank, without linear blocks; else empty.
  const std::vector<std::shared_ptr<const LowRankFactor>>& factors(const Execution& execution);

  /// What `automatic` became at the last call of operators(), and why.
  KernelAlgorithm algorithm() const { return chosen_; }
  const std::string& reason() const { return reason_; }
  double bytes() const { return bytes_; }  ///< of the stored matrices or factors

 private:
  void choose(std::size_t size_of_number);
  template <class T>
  Operators<T> make(const Execution& execution);
  template <class T>
  Operators<T>& kept();

  std::vector<std::shared_ptr<const Kernel>> kernels_;
  InputView X_;
  KernelSettings settings_;
  KernelAlgorithm chosen_;
  std::string reason_;
  double bytes_ = 0.0;
  Index cut_ = 0;  ///< the rank at which the memory ended, if it did
  Operators<float> single_;
  Operators<double> double_;
  Operators<double> certifying_;
  std::vector<std::shared_ptr<const LowRankFactor>> factors_;
};

const char* algorithm_name(KernelAlgorithm algorithm);

}  // namespace taxolearn
