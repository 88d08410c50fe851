// The covariance functions of the library, as values (see kernel.hpp for what they can do).
//
//   linear        v x.x'                                     theta = log (v)
//   stationary    v f(r), r^2 = sum_d (x_d - x'_d)^2 / l_d^2 theta = log (l..., [alpha], v)
//   polynomial    v (s x.x' + o)^degree                      theta = log (s, o, v); the derivative by log o is 0 at 0
//   cosine        v x.x' / (|x| |x'|), 0 where a norm is 0   theta = log (v)
//   precomputed   v X[i, j]                                  theta = log (v)
//   subsequence   see make_subsequence_kernel                theta = log (decay, v)
//   spectrum, weighted degree                                theta = log (v)
//   sum, product  of two or more kernels                     theta = those of the parts, one after the other
//   blocks        sum of one kernel per block of the inputs  theta = those of the parts, one after the other
//
// Between one list of rows and itself, block(i, j) and block(j, i) are transposes of each other, bit for bit, if they
// do not overlap, and block(i, i) is exactly symmetric.
#pragma once

#include <memory>
#include <vector>

#include "taxolearn/kernels/kernel.hpp"

namespace taxolearn {

/// f(r) of a stationary kernel:
///   rbf                 exp(-r^2 / 2)
///   matern12            exp(-r)
///   matern32            (1 + a) exp(-a), a = sqrt(3) r
///   matern52            (1 + a + a^2 / 3) exp(-a), a = sqrt(5) r
///   rational_quadratic  (1 + r^2 / (2 alpha))^-alpha
enum class StationaryForm { rbf, matern12, matern32, matern52, rational_quadratic };

// Each of these throws InvalidArgument, which names the parameter, unless all of them are positive and finite (the
// offset may be zero).

std::shared_ptr<const Kernel> make_linear_kernel(double variance);

/// One length scale for all features, or one per feature. Only rational_quadratic looks at alpha.
std::shared_ptr<const Kernel> make_stationary_kernel(StationaryForm form, std::vector<double> length_scales,
                                                     double variance, double alpha = 1.0);

std::shared_ptr<const Kernel> make_polynomial_kernel(int degree, double scale, double offset, double variance);

std::shared_ptr<const Kernel> make_cosine_kernel(double variance);

/// Inputs are rows of a kernel matrix, dense. The right rows lie in the square matrix of the training rows: entry (i,
/// j) is v times column right.source(j) of row left.source(i). That matrix must be symmetric up to rounding; its lower
/// triangle (in the order of the selected rows) counts.
std::shared_ptr<const Kernel> make_precomputed_kernel(double variance);

// The kernels of sequences read sparse rows whose entries are the codes of letters: whole numbers from 1 to 2^24 in
// columns 0, 1, 2, ... with none left out. How many columns there are does not matter. `normalized` divides by
// sqrt(k(x, x) k(x', x')); what has no substring at all then stays 0.

/// Pairs of equal subsequences of 1 to 8 letters, with gaps: each counts decay^(its spans in both sequences), for a
/// decay of at most 1.
std::shared_ptr<const Kernel> make_subsequence_kernel(int length, double decay, bool normalized, double variance);

/// Inner products of the counts of all substrings of some lengths.
std::shared_ptr<const Kernel> make_spectrum_kernel(const std::vector<int>& lengths, bool normalized, double variance);

/// Equal substrings at equal places; one of k letters counts 2 (d - k + 1) / (d (d + 1)), where d is the largest length.
std::shared_ptr<const Kernel> make_weighted_degree_kernel(const std::vector<int>& lengths, bool normalized,
                                                          double variance);

std::shared_ptr<const Kernel> make_sum_kernel(std::vector<std::shared_ptr<const Kernel>> parts);
std::shared_ptr<const Kernel> make_product_kernel(std::vector<std::shared_ptr<const Kernel>> parts);

/// Part b reads block b of the inputs, which must have as many blocks as there are parts.
std::shared_ptr<const Kernel> make_block_kernel(std::vector<std::shared_ptr<const Kernel>> parts);

/// out = the whole matrix. If `left` and `right` are the same object, one triangle is computed and mirrored.
template <class T>
void kernel_matrix(const Kernel& kernel, const InputRows& left, const InputRows& right, DenseView<T> out,
                   const Execution& execution);

/// gradient[k] = sum_ij Q[i, j] d/dtheta_k k(left row i, right row j), for all parameters, in double precision.
void kernel_gradient(const Kernel& kernel, const InputRows& left, const InputRows& right, DenseView<const double> Q,
                     double* gradient, const Execution& execution);

}  // namespace taxolearn
