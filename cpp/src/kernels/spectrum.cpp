// The spectrum kernel (Leslie, Eskin, Noble 2002): inner products of the counts of all substrings of some lengths.

#include "base.hpp"
#include "sequences.hpp"
#include "taxolearn/kernels/functions.hpp"

namespace taxolearn {
namespace {

using Numbers = std::vector<std::int32_t>;

constexpr std::uint64_t none = ~std::uint64_t{0};

/// Numbers 0, 1, ... by the order of the keys, equal for equal ones; -1 for none. Returns how many there are.
std::int32_t number(const std::vector<std::uint64_t>& keys, Numbers& numbers) {
  std::vector<std::uint64_t> distinct(keys);
  std::sort(distinct.begin(), distinct.end());
  distinct.erase(std::unique(distinct.begin(), distinct.end()), distinct.end());
  if (!distinct.empty() && distinct.back() == none) distinct.pop_back();
  numbers.resize(keys.size());
  for (std::size_t k = 0; k < keys.size(); ++k) {
    const auto at = std::lower_bound(distinct.begin(), distinct.end(), keys[k]);
    numbers[k] = keys[k] == none ? -1 : static_cast<std::int32_t>(at - distinct.begin());
  }
  return static_cast<std::int32_t>(distinct.size());
}

/// Sequences one after the other, and the substrings that start at each of their letters.
class Substrings {
 public:
  void add(const Sequences& sequences) {
    letters_.insert(letters_.end(), sequences.letters().begin(), sequences.letters().end());
    for (Index i = 0; i < sequences.count(); ++i) {
      const Index end = (sequence_ends_.empty() ? 0 : sequence_ends_.back()) + sequences.length(i);
      ends_.insert(ends_.end(), static_cast<std::size_t>(sequences.length(i)), end);
      sequence_ends_.push_back(end);
    }
  }

  /// Numbers the substrings of these lengths, starting anew for every one.
  void number_all(const std::vector<int>& lengths) {
    std::vector<std::uint64_t> keys(letters_.begin(), letters_.end());
    Numbers current;
    for (int length = 1; length <= *std::max_element(lengths.begin(), lengths.end()); ++length) {
      if (length > 1) {
        for (std::size_t k = 0; k < keys.size(); ++k) {
          const std::size_t last = k + static_cast<std::size_t>(length) - 1;
          const bool fits = static_cast<Index>(last) < ends_[k];
          keys[k] = !fits ? none
                          : (static_cast<std::uint64_t>(current[k]) << 32) | static_cast<std::uint64_t>(letters_[last]);
        }
      }
      const std::int32_t count = number(keys, current);
      if (std::find(lengths.begin(), lengths.end(), length) == lengths.end()) continue;
      numbers_.push_back(current);
      first_.push_back(total_);
      total_ += count;
    }
  }

  Index total() const { return total_; }

  /// Features of sequence i, sorted.
  std::vector<std::int64_t> features(Index i) const {
    std::vector<std::int64_t> out;
    const Index begin = i > 0 ? sequence_ends_[static_cast<std::size_t>(i - 1)] : 0;
    for (std::size_t m = 0; m < numbers_.size(); ++m) {
      for (Index k = begin; k < sequence_ends_[static_cast<std::size_t>(i)]; ++k) {
        const std::int32_t own = numbers_[m][static_cast<std::size_t>(k)];
        if (own >= 0) out.push_back(first_[m] + own);
      }
    }
    std::sort(out.begin(), out.end());
    return out;
  }

 private:
  Numbers letters_;
  std::vector<Index> ends_;  ///< of the sequence of each letter
  std::vector<Index> sequence_ends_;
  std::vector<Numbers> numbers_;
  std::vector<Index> first_;  ///< feature of each length
  Index total_ = 0;
};

/// Counts of substrings as sparse rows.
struct Counts {
  std::vector<float> values;
  std::vector<std::int64_t> columns;
  std::vector<std::int64_t> offsets{0};

  Counts(const Substrings& substrings, Index first, Index count) {
    for (Index i = first; i < first + count; ++i) {
      for (const std::int64_t feature : substrings.features(i)) {
        if (static_cast<std::int64_t>(columns.size()) == offsets.back() || columns.back() != feature) {
          columns.push_back(feature);
          values.push_back(0.0F);
        }
        values.back() += 1.0F;
      }
      offsets.push_back(static_cast<std::int64_t>(columns.size()));
    }
  }

  InputRows rows(Index features) const {
    return {SparseView<float, std::int64_t>{values.data(), columns.data(), offsets.data(),
                                            static_cast<Index>(offsets.size()) - 1, features},
            {}};
  }
};

/// Counts of one or two lists of sequences.
class SharedCounts {
 public:
  SharedCounts(const InputRows& left, const InputRows& right, const std::vector<int>& lengths) {
    const SequencePair sequences(left, right);
    Substrings substrings;
    substrings.add(sequences.left());
    if (!sequences.same()) substrings.add(sequences.right());
    substrings.number_all(lengths);
    left_.emplace(substrings, 0, sequences.left().count());
    left_rows_ = left_->rows(substrings.total());
    if (sequences.same()) return;
    right_.emplace(substrings, sequences.left().count(), sequences.right().count());
    right_rows_ = right_->rows(substrings.total());
  }
  SharedCounts(const SharedCounts&) = delete;
  SharedCounts& operator=(const SharedCounts&) = delete;

  const InputRows& left() const { return left_rows_; }
  const InputRows& right() const { return right_.has_value() ? right_rows_ : left_rows_; }

 private:
  std::optional<Counts> left_, right_;
  InputRows left_rows_, right_rows_;
};

template <class T>
class SpectrumEntries final : public KernelEntries<T> {
 public:
  SpectrumEntries(const Kernel& of_counts, const std::vector<int>& lengths, const InputRows& left,
                  const InputRows& right, const Execution& execution)
      : counts_(left, right, lengths),
        entries_(kernel_entries<T>(of_counts, counts_.left(), counts_.right(), execution)) {}

  void block(Index i, Index j, DenseView<T> out) const override { entries_->block(i, j, out); }
  void gradient(Index i, Index j, DenseView<const double> Q, double* gradient) const override {
    entries_->gradient(i, j, Q, gradient);
  }

 private:
  SharedCounts counts_;
  std::unique_ptr<KernelEntries<T>> entries_;
};

class SpectrumKernel final : public KernelBase<SpectrumKernel> {
 public:
  SpectrumKernel(std::vector<int> lengths, std::shared_ptr<const Kernel> of_counts)
      : lengths_(std::move(lengths)), of_counts_(std::move(of_counts)) {}

  Index parameters() const override { return 1; }

  void diag(const InputRows& rows, double* out) const override {
    of_counts_->diag(SharedCounts(rows, rows, lengths_).left(), out);
  }

  void diag_gradient(const InputRows& rows, const double* q, double* gradient) const override {
    of_counts_->diag_gradient(SharedCounts(rows, rows, lengths_).left(), q, gradient);
  }

  template <class T>
  std::unique_ptr<KernelEntries<T>> entries(const InputRows& left, const InputRows& right,
                                            const Execution& execution) const {
    return std::make_unique<SpectrumEntries<T>>(*of_counts_, lengths_, left, right, execution);
  }

 private:
  std::vector<int> lengths_;
  std::shared_ptr<const Kernel> of_counts_;
};

}  // namespace

std::shared_ptr<const Kernel> make_spectrum_kernel(const std::vector<int>& lengths, bool normalized, double variance) {
  require_lengths(lengths);
  return std::make_shared<SpectrumKernel>(lengths,
                                          normalized ? make_cosine_kernel(variance) : make_linear_kernel(variance));
}

}  // namespace taxolearn
