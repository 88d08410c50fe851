// Products of dense matrices: A B and A^T B by a kernel for tall and narrow factors, which copies nothing of A; A B^T
// and results of few rows or columns by Eigen's. They are compiled once, for all sources: each source that
// named them would take the compiler seconds more.
//
// All run on the calling thread. The result must not overlap the factors.
#pragma once

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

/// Which factor is transposed.
enum class Product { AB, AtB, ABt };

/// out += scale A B, or with A^T or B^T.
void add_product(Product form, DenseView<const float> A, DenseView<const float> B, DenseView<float> out,
                 float scale = 1.0F);
void add_product(Product form, DenseView<const double> A, DenseView<const double> B, DenseView<double> out,
                 double scale = 1.0);

/// out = scale A B, or with A^T or B^T; what out held does not matter.
void set_product(Product form, DenseView<const float> A, DenseView<const float> B, DenseView<float> out,
                 float scale = 1.0F);
void set_product(Product form, DenseView<const double> A, DenseView<const double> B, DenseView<double> out,
                 double scale = 1.0);

}  // namespace taxolearn
