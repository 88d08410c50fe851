#include "products.hpp"

#include <algorithm>

#include "taxolearn/base/check.hpp"
#include "taxolearn/base/matrix_block.hpp"
#include "taxolearn/base/packets.hpp"
#include "taxolearn/base/product.hpp"
#include "taxolearn/kernels/functions.hpp"

namespace taxolearn {
namespace {

constexpr Index column_chunk = 64;  // of the weights, that one thread changes
constexpr Index row_chunk = 8;      // of a batch, that one thread multiplies

/// body(feature, value) of the entries of a row.
template <class V, class I, class Body>
void each_entry(const SparseView<V, I>& X, Index i, const Body& body) {
  constexpr I ahead = 4;
  for (I k = X.offsets[i]; k < X.offsets[i + 1]; ++k) {
    if (k + ahead < X.offsets[i + 1]) body.fetch(static_cast<Index>(X.columns[k + ahead]));
    body(static_cast<Index>(X.columns[k]), static_cast<double>(X.values[k]));
  }
}

template <class V, class Body>
void each_entry(const DenseView<V>& X, Index i, const Body& body) {
  for (Index k = 0; k < X.cols; ++k) body(k, static_cast<double>(X.row(i)[k]));
}

template <class Body>
void each_entry(const BlockedView&, Index, const Body&) {}  // refused before

/// out += value W[feature].
struct AddWeights {
  const double* W;
  Index count;
  double* out;

  void fetch(Index feature) const { prefetch(W + feature * count); }
  void operator()(Index feature, double value) const {
    const double* const w = W + feature * count;
#pragma omp simd
    for (Index r = 0; r < count; ++r) out[r] += value * w[r];
  }
};

/// W[feature] += value change, of some columns.
struct ChangeWeights {
  double* W;
  Index count, first, last;
  const double* change;

  void fetch(Index feature) const { prefetch(W + feature * count + first); }
  void operator()(Index feature, double value) const {
    double* const w = W + feature * count;
#pragma omp simd
    for (Index r = first; r < last; ++r) w[r] += value * change[r];
  }
};

struct Scatter {
  double* to;
  void fetch(Index) const {}
  void operator()(Index feature, double value) const { to[feature] += value; }
};

struct Erase {
  double* to;
  void fetch(Index) const {}
  void operator()(Index feature, double) const { to[feature] = 0.0; }
};

struct Gather {
  const double* from;
  double& sum;
  void fetch(Index) const {}
  void operator()(Index feature, double value) const { sum += value * from[feature]; }
};

class LinearProducts final : public PredictingProducts {
 public:
  LinearProducts(const InputView& X, Index components) : X_(X), weights_(input_features(X), components) {
    require(input_blocks(X) == nullptr, "X has blocks, expected one matrix: put them side by side first");
  }

  Index rows() const override { return input_rows(X_); }
  void diag(double* out) const override { squared_norms(X_, out); }

  void products(const std::vector<Index>& rows, DenseView<double> z, DenseView<double> among,
                const Execution& execution) override {
    std::visit(
        [&](const auto& X) {
          const Blocks blocks(static_cast<Index>(rows.size()), row_chunk);
          parallel_for(blocks.number(), execution, [&](Index block) {
            std::vector<double> scattered(among.data == nullptr ? 0 : static_cast<std::size_t>(input_features(X_)));
            const Index first = blocks.first(block);
            for (Index b = first; b < first + blocks.length(block); ++b) {
              const Index row = rows[static_cast<std::size_t>(b)];
              std::fill_n(z.row(b), z.cols, 0.0);
              each_entry(X, row, AddWeights{weights_.data(), weights_.cols(), z.row(b)});
              if (among.data == nullptr) continue;
              each_entry(X, row, Scatter{scattered.data()});
              for (Index later = b + 1; later < z.rows; ++later) {
                among.row(b)[later] = 0.0;
                each_entry(X, rows[static_cast<std::size_t>(later)], Gather{scattered.data(), among.row(b)[later]});
              }
              each_entry(X, row, Erase{scattered.data()});
            }
          });
        },
        X_);
  }

  void add(const std::vector<Index>& rows, DenseView<const double> changes, const Execution& execution) override {
    std::visit(
        [&](const auto& X) {
          const Blocks chunks(changes.cols, column_chunk);
          parallel_for(chunks.number(), execution, [&](Index chunk) {
            const Index first = chunks.first(chunk), last = first + chunks.length(chunk);
            for (Index b = 0; b < changes.rows; ++b) {
              const double* const change = changes.row(b);
              if (std::all_of(change + first, change + last, [](double value) { return value == 0.0; })) continue;
              each_entry(X, rows[static_cast<std::size_t>(b)],
                         ChangeWeights{weights_.data(), weights_.cols(), first, last, change});
            }
          });
        },
        X_);
  }

  void clear() override { taxolearn::clear(weights_.view()); }
  Matrix<double> take() override { return std::move(weights_); }

 private:
  InputView X_;
  Matrix<double> weights_;
};

class KernelProducts final : public PredictingProducts {
 public:
  KernelProducts(const Kernel& kernel, const InputView& X, Index components, double memory_limit,
                 const Execution& execution)
      : kernel_(kernel), all_{X, {}}, multipliers_(input_rows(X), components) {
    const Index n = input_rows(X);
    if (static_cast<double>(n) * static_cast<double>(n) * sizeof(double) > memory_limit) return;
    stored_ = Matrix<double>::uninitialised(n, n);
    kernel_matrix<double>(kernel, all_, all_, stored_.view(), execution);
  }

  Index rows() const override { return all_.count(); }
  void diag(double* out) const override { kernel_.diag(all_, out); }

  void products(const std::vector<Index>& rows, DenseView<double> z, DenseView<double> among,
                const Execution& execution) override {
    const Index n = all_.count(), count = static_cast<Index>(rows.size());
    if (tile_.rows() < count) tile_ = Matrix<double>::uninitialised(count, n);
    const DenseView<double> tile(tile_.data(), count, n);
    if (stored_.rows() == 0) kernel_matrix<double>(kernel_, {all_.X, rows}, all_, tile, execution);
    const Blocks blocks(count, row_chunk);
    parallel_for(blocks.number(), execution, [&](Index block) {
      const Index first = blocks.first(block), length = blocks.length(block);
      for (Index b = first; stored_.rows() > 0 && b < first + length; ++b) {
        std::copy_n(stored_.row(rows[static_cast<std::size_t>(b)]), n, tile.row(b));
      }
      set_product(Product::AB, row_block(tile, first, length), multipliers_.view(), row_block(z, first, length));
      for (Index b = first; among.data != nullptr && b < first + length; ++b) {
        for (Index other = b + 1; other < count; ++other) {
          among.row(b)[other] = tile.row(b)[rows[static_cast<std::size_t>(other)]];
        }
      }
    });
  }

  void add(const std::vector<Index>& rows, DenseView<const double> changes, const Execution&) override {
    for (Index b = 0; b < changes.rows; ++b) {
      double* const m = multipliers_.row(rows[static_cast<std::size_t>(b)]);
      for (Index r = 0; r < changes.cols; ++r) m[r] += changes.row(b)[r];
    }
  }

  void clear() override { taxolearn::clear(multipliers_.view()); }
  Matrix<double> take() override { return std::move(multipliers_); }

 private:
  const Kernel& kernel_;
  InputRows all_;
  Matrix<double> multipliers_, stored_, tile_;
};

}  // namespace

std::unique_ptr<PredictingProducts> linear_products(const InputView& X, Index components) {
  return std::make_unique<LinearProducts>(X, components);
}

std::unique_ptr<PredictingProducts> kernel_products(const Kernel& kernel, const InputView& X, Index components,
                                                    double memory_limit, const Execution& execution) {
  return std::make_unique<KernelProducts>(kernel, X, components, memory_limit, execution);
}

}  // namespace taxolearn
