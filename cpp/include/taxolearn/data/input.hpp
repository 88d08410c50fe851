// The inputs X (n x d) as the user holds them, and exact double-precision products with blocks of their rows.
//
// These serve prediction, the final weights and the certificate of a fit. The iterations of a fit use an
// operator (operators/operator.hpp), which may rearrange and round its copy of X.
#pragma once

#include <cstdint>
#include <functional>
#include <variant>
#include <vector>

#include "taxolearn/base/matrix.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

struct InputBlock;

/// Matrices of the same rows side by side, each times a factor: [f_0 X_0, f_1 X_1, ...]. They are never put together:
/// everything here, and every operator, works on one after the other, each in its own way.
struct BlockedView {
  std::vector<InputBlock> blocks;
  Index rows = 0;
  Index cols = 0;  ///< of all blocks
};

using InputView =
    std::variant<SparseView<float, std::int32_t>, SparseView<float, std::int64_t>, SparseView<double, std::int32_t>,
                 SparseView<double, std::int64_t>, DenseView<const float>, DenseView<const double>, BlockedView>;

struct InputBlock {
  InputView X;  ///< itself without blocks
  double factor = 1.0;
  Index first = 0;  ///< of its columns among all
};

/// The matrices side by side, with factors 1. Throws InvalidArgument unless there is one, and all have the same rows.
InputView side_by_side(const std::vector<InputView>& matrices);

/// The same blocks with the square roots of these numbers as factors, one per block and positive.
InputView with_variances(const InputView& X, const std::vector<double>& variances);

/// The blocks of the inputs; null for a single matrix.
const std::vector<InputBlock>* input_blocks(const InputView& X);

bool is_sparse(const InputView& X);
Index input_rows(const InputView& X);
Index input_features(const InputView& X);

/// Number of stored entries: the nonzeros of a sparse matrix, n d of a dense one, of blocks those of all.
Index input_entries(const InputView& X);

/// out = X[first : first + out.rows] W, with W (d x C) and out (rows x C). Serial.
void expand_rows(const InputView& X, Index first, DenseView<const double> W, DenseView<double> out);
void expand_rows(const InputView& X, Index first, DenseView<const float> W, DenseView<double> out);

/// W[:, columns] += X[first : first + S.rows]^T S[:, columns] for the columns column .. column + count.
/// Serial; calls on different columns may run at the same time.
void project_columns(const InputView& X, Index first, DenseView<const double> S, Index column, Index count,
                     DenseView<double> W);

/// W = X^T S, with S (n x C) and W (d x C), for a sparse matrix X whose rows are sorted by column. Needs no copy of X;
/// the same bits for any number of threads.
void project_sparse(const InputView& X, DenseView<const double> S, DenseView<double> W, const Execution& execution);

/// The same for those who need no more than some rows of W at a time: take(first row, rows), which may overwrite them.
/// Calls run at the same time, in any order and in parts that depend on the number of threads.
void project_sparse(const InputView& X, DenseView<const double> S,
                    const std::function<void(Index, DenseView<double>)>& take, const Execution& execution);

/// The same for a dense matrix X, whose entries become double a few at a time.
void project_dense(const InputView& X, DenseView<const double> S, DenseView<double> W, const Execution& execution);

/// out[i] = |x_i|^2.
void squared_norms(const InputView& X, double* out);

}  // namespace taxolearn
