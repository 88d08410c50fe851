// The kernel of gapped subsequences, pairs of sequences in the lanes of registers.

#include <array>
#include <mutex>
#include <numeric>

#include "base.hpp"
#include "sequences.hpp"
#include "subsequence_program.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/kernels/functions.hpp"

namespace taxolearn {
namespace {

constexpr int longest = 8;
constexpr std::int32_t after_left = -1, after_right = -2;  // equal no letter, nor each other

template <class T>
struct Program {
  void (*run)(const LanePairs<T>&, const DecayPowers&, T (*)[LaneVectors<T>::count]);
  int columns;
  int edge_size;
};

template <class T, bool derivative, int... levels>
Program<T> program_of(int length, std::integer_sequence<int, levels...>) {
  constexpr std::array<Program<T>, sizeof...(levels)> all{
      {{&SubsequenceProgram<T, levels, derivative>::run, SubsequenceProgram<T, levels, derivative>::columns,
        SubsequenceProgram<T, levels, derivative>::edge_size}...}};
  return all[static_cast<std::size_t>(length - 1)];
}

/// The program for subsequences of so many letters.
template <class T, bool derivative>
Program<T> program_of(int length) {
  return program_of<T, derivative>(length, std::make_integer_sequence<int, longest>{});
}

struct SubsequenceParameters {
  int length;
  bool normalized;
  double variance;
  DecayPowers powers;

  /// What the sums of the program are multiplied with.
  double factor() const { return std::pow(powers.decay, length + 1); }
};

Index padded(Index length, int columns) { return (length + columns - 1) / columns * columns; }

/// Numbers 0 .. count - 1, those of shorter sequences first.
std::vector<Index> by_length(const Sequences& sequences, Index first, Index count) {
  std::vector<Index> order(static_cast<std::size_t>(count));
  std::iota(order.begin(), order.end(), Index{0});
  std::stable_sort(order.begin(), order.end(),
                   [&](Index a, Index b) { return sequences.length(first + a) < sequences.length(first + b); });
  return order;
}

/// Writes a sequence into one lane, filled up to a length.
template <class Code>
void fill_lane(const Sequences& sequences, Index i, Index length, std::int32_t filler, int lanes, Code* to) {
  const std::int32_t* const codes = sequences.codes(i);
  const Index own = sequences.length(i);
  for (Index k = 0; k < length; ++k) to[k * lanes] = static_cast<Code>(k < own ? codes[k] : filler);
}

/// Every sequence with itself: sums of the program, or their derivatives by the log of the decay.
template <bool derivative>
std::vector<double> self_sums(const Sequences& sequences, const SubsequenceParameters& parameters,
                              const Execution& execution) {
  constexpr int lanes = LaneVectors<double>::count;
  const Program<double> program = program_of<double, derivative>(parameters.length);
  const std::vector<Index> order = by_length(sequences, 0, sequences.count());
  std::vector<double> out(order.size());
  const Blocks groups(sequences.count(), lanes);
  const std::array<double, lanes> ones = [] {
    std::array<double, lanes> all{};
    all.fill(1.0);
    return all;
  }();
  parallel_for(groups.number(), execution, [&](Index group) {
    const Index* const members = order.data() + groups.first(group);
    const Index count = groups.length(group), rows = sequences.length(members[count - 1]);
    const Index columns = padded(rows, program.columns);
    Scratch<LanePairs<double>::Code> left(rows, lanes), right(columns, lanes);
    Scratch<double> edge(rows, program.edge_size);
    for (int lane = 0; lane < lanes; ++lane) {  // lanes without a sequence repeat the last
      const Index i = members[std::min<Index>(lane, count - 1)];
      fill_lane(sequences, i, rows, after_left, lanes, left.row(0) + lane);
      fill_lane(sequences, i, columns, after_right, lanes, right.row(0) + lane);
    }
    double sums[2][lanes];
    program.run({left.row(0), rows, right.row(0), columns, ones.data(), edge.row(0)}, parameters.powers, sums);
    for (Index k = 0; k < count; ++k) out[static_cast<std::size_t>(members[k])] = sums[derivative ? 1 : 0][k];
  });
  return out;
}

/// One side of the matrix. Sums of pairs are computed relative to the roots of those of the sequences themselves, which
/// keeps them within the range of single precision.
struct SelfSums {
  std::vector<double> sums;
  std::vector<double> slopes;  ///< derivatives of the logarithms of the sums

  double quarter_root(Index i) const {
    const double sum = sums[static_cast<std::size_t>(i)];
    return sum > 0.0 ? 1.0 / std::sqrt(std::sqrt(sum)) : 0.0;
  }
};

template <class T>
class SubsequenceEntries final : public SymmetricEntries<T> {
 public:
  SubsequenceEntries(const SubsequenceParameters& parameters, const InputRows& left, const InputRows& right,
                     const Execution& execution)
      : SymmetricEntries<T>(&left == &right), parameters_(parameters), rows_(left, right) {
    left_.sums = self_sums<false>(rows_.left(), parameters, execution);
    if (!rows_.same()) right_.sums = self_sums<false>(rows_.right(), parameters, execution);
  }

  void gradient(Index i, Index j, DenseView<const double> Q, double* gradient) const override {
    std::call_once(has_slopes_, [this] {
      set_slopes(rows_.left(), left_);
      if (!rows_.same()) set_slopes(rows_.right(), right_);
    });
    double by_decay = 0.0, by_variance = 0.0;
    visit<true>(i, j, Q.rows, Q.cols, [&](Index a, Index b, double value, double slope) {
      const double weight = Q.row(a)[b];
      double derivative = slope;
      if (parameters_.normalized) {
        const auto l = static_cast<std::size_t>(i + a), r = static_cast<std::size_t>(j + b);
        derivative -= 0.5 * value * (left_.slopes[l] + right().slopes[r]);
      } else {
        derivative += value * static_cast<double>(parameters_.length + 1);
      }
      by_decay += weight * derivative;
      by_variance += weight * value;
    });
    gradient[0] += by_decay;
    gradient[1] += by_variance;
  }

 protected:
  void compute(Index i, Index j, DenseView<T> out) const override {
    visit<false>(i, j, out.rows, out.cols,
                 [&](Index a, Index b, double value, double) { out.row(a)[b] = static_cast<T>(value); });
  }

 private:
  const SelfSums& right() const { return rows_.same() ? left_ : right_; }

  void set_slopes(const Sequences& sequences, SelfSums& side) const {
    side.slopes = self_sums<true>(sequences, parameters_, Execution{});
    for (std::size_t k = 0; k < side.slopes.size(); ++k) side.slopes[k] /= side.sums[k] > 0.0 ? side.sums[k] : 1.0;
  }

  /// take(a, b, value, derivative of the program's sum in the same unit) for the pairs of a block.
  template <bool derivative, class Take>
  void visit(Index i, Index j, Index rows, Index columns, const Take& take) const {
    constexpr int lanes = LaneVectors<T>::count;
    const Program<T> program = program_of<T, derivative>(parameters_.length);
    const std::vector<Index> order = by_length(rows_.right(), j, columns);
    Index tallest = 0;
    for (Index a = 0; a < rows; ++a) tallest = std::max(tallest, rows_.left().length(i + a));
    Scratch<typename LanePairs<T>::Code> left(tallest, lanes);
    Scratch<T> edge(tallest, program.edge_size);
    const Blocks groups(columns, lanes);
    for (Index group = 0; group < groups.number(); ++group) {
      const Index* const members = order.data() + groups.first(group);
      const Index count = groups.length(group);
      const Index width = padded(rows_.right().length(j + members[count - 1]), program.columns);
      Scratch<typename LanePairs<T>::Code> right_codes(width, lanes);
      for (int lane = 0; lane < lanes; ++lane) {  // lanes without a sequence repeat the last
        const Index b = members[std::min<Index>(lane, count - 1)];
        fill_lane(rows_.right(), j + b, width, after_right, lanes, right_codes.row(0) + lane);
      }
      for (Index a = 0; a < rows; ++a) {
        const Index height = rows_.left().length(i + a);
        const std::int32_t* const codes = rows_.left().codes(i + a);
        for (Index k = 0; k < height; ++k) std::fill_n(left.row(k), lanes, codes[k]);
        T source[lanes] = {}, sums[2][lanes] = {};
        double units[lanes];
        for (Index k = 0; k < count; ++k) {
          units[k] = left_.quarter_root(i + a) * right().quarter_root(j + members[k]);
          source[k] = static_cast<T>(units[k]);
        }
        program.run({left.row(0), height, right_codes.row(0), width, source, edge.row(0)}, parameters_.powers, sums);
        for (Index k = 0; k < count; ++k) {
          double unit = units[k];
          if (!parameters_.normalized) unit = unit > 0.0 ? parameters_.factor() / unit : 0.0;
          unit *= parameters_.variance;
          take(a, members[k], unit * static_cast<double>(sums[0][k]), unit * static_cast<double>(sums[1][k]));
        }
      }
    }
  }

  SubsequenceParameters parameters_;
  SequencePair rows_;
  mutable std::once_flag has_slopes_;
  mutable SelfSums left_;
  mutable SelfSums right_;
};

class SubsequenceKernel final : public KernelBase<SubsequenceKernel> {
 public:
  explicit SubsequenceKernel(const SubsequenceParameters& parameters) : parameters_(parameters) {}

  Index parameters() const override { return 2; }

  void diag(const InputRows& rows, double* out) const override {
    const std::vector<double> values = values_of<false>(Sequences("selected", rows));
    std::copy(values.begin(), values.end(), out);
  }

  void diag_gradient(const InputRows& rows, const double* q, double* gradient) const override {
    const Sequences sequences("selected", rows);
    gradient[0] += dot_block(q, values_of<true>(sequences).data(), rows.count());
    gradient[1] += dot_block(q, values_of<false>(sequences).data(), rows.count());
  }

  template <class T>
  std::unique_ptr<KernelEntries<T>> entries(const InputRows& left, const InputRows& right,
                                            const Execution& execution) const {
    return std::make_unique<SubsequenceEntries<T>>(parameters_, left, right, execution);
  }

 private:
  /// The diagonal, or its derivative by the log of the decay.
  template <bool derivative>
  std::vector<double> values_of(const Sequences& sequences) const {
    std::vector<double> out(static_cast<std::size_t>(sequences.count()));
    if (parameters_.normalized) {
      for (Index i = 0; i < sequences.count() && !derivative; ++i) {
        const bool has_any = sequences.length(i) >= parameters_.length;
        out[static_cast<std::size_t>(i)] = has_any ? parameters_.variance : 0.0;
      }
      return out;
    }
    out = self_sums<false>(sequences, parameters_, Execution{});
    if (derivative) {
      const std::vector<double> slopes = self_sums<true>(sequences, parameters_, Execution{});
      for (std::size_t i = 0; i < out.size(); ++i) out[i] = slopes[i] + (parameters_.length + 1) * out[i];
    }
    for (double& value : out) value *= parameters_.variance * parameters_.factor();
    return out;
  }

  SubsequenceParameters parameters_;
};

}  // namespace

std::shared_ptr<const Kernel> make_subsequence_kernel(int length, double decay, bool normalized, double variance) {
  require(length >= 1 && length <= longest, "length must be from 1 to ", longest, ", got ", length);
  require_positive("decay", decay);
  require(decay <= 1.0, "decay must be at most 1, got ", decay);
  require_positive("variance", variance);
  return std::make_shared<SubsequenceKernel>(SubsequenceParameters{length, normalized, variance, DecayPowers(decay)});
}

}  // namespace taxolearn
