// Sums and products of kernels, and sums over blocks of the inputs.

#include "base.hpp"
#include "taxolearn/kernels/functions.hpp"

namespace taxolearn {
namespace {

using Parts = std::vector<std::shared_ptr<const Kernel>>;

enum class Composition { sum, product };

/// to += from or to *= from, element by element.
template <class From, class To>
void combine(Composition composition, const DenseView<From>& from, const DenseView<To>& to) {
  for (Index i = 0; i < to.rows; ++i) {
    const From* const a = from.row(i);
    To* const b = to.row(i);
    if (composition == Composition::sum) {
#pragma omp simd
      for (Index j = 0; j < to.cols; ++j) b[j] += static_cast<To>(a[j]);
    } else {
#pragma omp simd
      for (Index j = 0; j < to.cols; ++j) b[j] *= static_cast<To>(a[j]);
    }
  }
}

template <class T>
class CompositeEntries final : public KernelEntries<T> {
 public:
  explicit CompositeEntries(Composition composition) : composition_(composition) {}

  /// The rows, for as long as the entries may look at them.
  const std::vector<InputRows>& keep(std::vector<InputRows> rows) {
    kept_.push_back(std::make_unique<const std::vector<InputRows>>(std::move(rows)));
    return *kept_.back();
  }

  void add(const Kernel& part, const InputRows& left, const InputRows& right, const Execution& execution) {
    parts_.push_back(kernel_entries<T>(part, left, right, execution));
    parameters_.push_back(part.parameters());
  }

  void block(Index i, Index j, DenseView<T> out) const override {
    parts_.front()->block(i, j, out);
    Scratch<T> other(out.rows, out.cols);
    for (std::size_t k = 1; k < parts_.size(); ++k) {
      parts_[k]->block(i, j, other.view());
      combine(composition_, other.view(), out);
    }
  }

  void gradient(Index i, Index j, DenseView<const double> Q, double* gradient) const override {
    if (composition_ == Composition::sum) {
      for (std::size_t k = 0; k < parts_.size(); gradient += parameters_[k++]) parts_[k]->gradient(i, j, Q, gradient);
      return;
    }
    // The weight of part k: Q times the parts before it (kept from one k to the next), times those after it.
    Scratch<double> before(Q.rows, Q.cols), weight(Q.rows, Q.cols);
    Scratch<T> part(Q.rows, Q.cols);
    copy(Q, before.view());
    for (std::size_t k = 0; k < parts_.size(); gradient += parameters_[k++]) {
      copy(before.view(), weight.view());
      for (std::size_t other = k; other < parts_.size() && k + 1 < parts_.size(); ++other) {
        parts_[other]->block(i, j, part.view());
        combine(composition_, part.view(), other == k ? before.view() : weight.view());
      }
      parts_[k]->gradient(i, j, weight.view(), gradient);
    }
  }

 private:
  Composition composition_;
  std::vector<std::unique_ptr<const std::vector<InputRows>>> kept_;
  std::vector<std::unique_ptr<KernelEntries<T>>> parts_;
  std::vector<Index> parameters_;
};

class CompositeKernel final : public KernelBase<CompositeKernel> {
 public:
  CompositeKernel(Composition composition, Parts parts) : composition_(composition), parts_(std::move(parts)) {}

  Index parameters() const override {
    Index count = 0;
    for (const auto& part : parts_) count += part->parameters();
    return count;
  }

  void diag(const InputRows& rows, double* out) const override {
    Matrix<double> other(1, rows.count());
    parts_.front()->diag(rows, out);
    for (std::size_t k = 1; k < parts_.size(); ++k) {
      parts_[k]->diag(rows, other.data());
      combine(composition_, other.view(), DenseView<double>(out, 1, rows.count()));
    }
  }

  void diag_gradient(const InputRows& rows, const double* q, double* gradient) const override {
    Matrix<double> weight(1, rows.count()), other(1, rows.count());
    for (std::size_t k = 0; k < parts_.size(); gradient += parts_[k++]->parameters()) {
      std::copy_n(q, rows.count(), weight.data());
      for (std::size_t m = 0; m < parts_.size() && composition_ == Composition::product; ++m) {
        if (m == k) continue;
        parts_[m]->diag(rows, other.data());
        combine(composition_, other.view(), weight.view());
      }
      parts_[k]->diag_gradient(rows, weight.data(), gradient);
    }
  }

  template <class T>
  std::unique_ptr<KernelEntries<T>> entries(const InputRows& left, const InputRows& right,
                                            const Execution& execution) const {
    auto out = std::make_unique<CompositeEntries<T>>(composition_);
    for (const auto& part : parts_) out->add(*part, left, right, execution);
    return out;
  }

 private:
  Composition composition_;
  Parts parts_;
};

class BlockKernel final : public KernelBase<BlockKernel> {
 public:
  explicit BlockKernel(Parts parts) : parts_(std::move(parts)) {}

  Index parameters() const override {
    Index count = 0;
    for (const auto& part : parts_) count += part->parameters();
    return count;
  }

  Parts block_parts() const override { return parts_; }

  void diag(const InputRows& rows, double* out) const override {
    std::vector<double> other(static_cast<std::size_t>(rows.count()));
    std::fill(out, out + rows.count(), 0.0);
    const std::vector<InputRows> blocks = split(rows);
    for (std::size_t b = 0; b < parts_.size(); ++b) {
      parts_[b]->diag(blocks[b], other.data());
      for (std::size_t i = 0; i < other.size(); ++i) out[i] += other[i];
    }
  }

  void diag_gradient(const InputRows& rows, const double* q, double* gradient) const override {
    const std::vector<InputRows> blocks = split(rows);
    for (std::size_t b = 0; b < parts_.size(); gradient += parts_[b++]->parameters())
      parts_[b]->diag_gradient(blocks[b], q, gradient);
  }

  template <class T>
  std::unique_ptr<KernelEntries<T>> entries(const InputRows& left, const InputRows& right,
                                            const Execution& execution) const {
    auto out = std::make_unique<CompositeEntries<T>>(Composition::sum);
    const std::vector<InputRows>& left_blocks = out->keep(split(left));
    const std::vector<InputRows>& right_blocks = &left == &right ? left_blocks : out->keep(split(right));
    for (std::size_t b = 0; b < parts_.size(); ++b) out->add(*parts_[b], left_blocks[b], right_blocks[b], execution);
    return out;
  }

 private:
  std::vector<InputRows> split(const InputRows& rows) const {
    const std::vector<InputBlock>* const blocks = input_blocks(rows.X);
    require(blocks != nullptr && blocks->size() == parts_.size(), "the inputs have ",
            blocks == nullptr ? 0 : blocks->size(), " blocks, expected ", parts_.size(), ", one for every kernel");
    std::vector<InputRows> out;
    for (const InputBlock& block : *blocks) {
      require(block.factor == 1.0, "a block has the factor ", block.factor, ", expected 1: variances are the kernels'");
      out.push_back({block.X, rows.selected});
    }
    return out;
  }

  Parts parts_;
};

std::shared_ptr<const Kernel> make_composite(Composition composition, Parts parts) {
  const char* const name = composition == Composition::sum ? "sum" : "product";
  require(parts.size() >= 2, "a ", name, " of kernels needs at least two, got ", parts.size());
  for (const auto& part : parts) require(part != nullptr, "a part of the ", name, " of kernels is null");
  return std::make_shared<CompositeKernel>(composition, std::move(parts));
}

}  // namespace

std::shared_ptr<const Kernel> make_sum_kernel(Parts parts) {
  return make_composite(Composition::sum, std::move(parts));
}

std::shared_ptr<const Kernel> make_product_kernel(Parts parts) {
  return make_composite(Composition::product, std::move(parts));
}

std::shared_ptr<const Kernel> make_block_kernel(Parts parts) {
  require(!parts.empty(), "there is no kernel, expected one for every block");
  for (const auto& part : parts) require(part != nullptr, "the kernel of a block is null");
  return std::make_shared<BlockKernel>(std::move(parts));
}

}  // namespace taxolearn
