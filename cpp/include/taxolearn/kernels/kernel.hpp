// The contract of a covariance function k(x, x'; theta): its entries over given inputs, block by block.
//
// A kernel is a value: it knows its parameters, never inputs. Bound to two lists of rows it gives blocks of the matrix
// between them and, for the same blocks, sums over the derivatives with respect to all parameters theta, which are
// logarithms. Operators (gram, tiled, low_rank) are written on this contract alone, so a new kernel touches none of
// them.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/data/input.hpp"

namespace taxolearn {

/// Some rows of the inputs, in some order. A view: the inputs must outlive it.
struct InputRows {
  InputView X;
  std::vector<Index> selected;  ///< empty: all rows, in order

  Index count() const { return selected.empty() ? input_rows(X) : static_cast<Index>(selected.size()); }
  Index source(Index i) const { return selected.empty() ? i : selected[static_cast<std::size_t>(i)]; }
};

/// The kernel between two lists of rows. Any number of threads may ask at the same time.
template <class T>
class KernelEntries {
 public:
  virtual ~KernelEntries() = default;

  /// out[a, b] = k(left row i + a, right row j + b).
  virtual void block(Index i, Index j, DenseView<T> out) const = 0;

  /// gradient[k] += sum_ab Q[a, b] d/dtheta_k k(left row i + a, right row j + b), for all parameters.
  virtual void gradient(Index i, Index j, DenseView<const double> Q, double* gradient) const = 0;
};

class Kernel {
 public:
  virtual ~Kernel() = default;

  /// Number of parameters theta, all on log scale.
  virtual Index parameters() const = 0;

  /// The variance v where k(x, x') = v x . x'; nothing for other kernels.
  virtual std::optional<double> linear_variance() const { return std::nullopt; }

  /// The kernels of the blocks of the inputs, whose sum this is; empty for kernels of one matrix.
  virtual std::vector<std::shared_ptr<const Kernel>> block_parts() const { return {}; }

  /// Binds the kernel to inputs; `left` and `right` may be the same object, which makes the matrix exactly symmetric.
  /// Throws InvalidArgument if the inputs do not fit each other or the kernel.
  virtual std::unique_ptr<KernelEntries<float>> single_entries(const InputRows& left, const InputRows& right,
                                                               const Execution& execution) const = 0;
  virtual std::unique_ptr<KernelEntries<double>> double_entries(const InputRows& left, const InputRows& right,
                                                                const Execution& execution) const = 0;

  /// out[i] = k(x_i, x_i).
  virtual void diag(const InputRows& rows, double* out) const = 0;

  /// gradient[k] += sum_i q[i] d/dtheta_k k(x_i, x_i).
  virtual void diag_gradient(const InputRows& rows, const double* q, double* gradient) const = 0;
};

/// The same by the precision.
template <class T>
std::unique_ptr<KernelEntries<T>> kernel_entries(const Kernel& kernel, const InputRows& left, const InputRows& right,
                                                 const Execution& execution);
template <>
inline std::unique_ptr<KernelEntries<float>> kernel_entries(const Kernel& kernel, const InputRows& left,
                                                            const InputRows& right, const Execution& execution) {
  return kernel.single_entries(left, right, execution);
}
template <>
inline std::unique_ptr<KernelEntries<double>> kernel_entries(const Kernel& kernel, const InputRows& left,
                                                             const InputRows& right, const Execution& execution) {
  return kernel.double_entries(left, right, execution);
}

}  // namespace taxolearn
