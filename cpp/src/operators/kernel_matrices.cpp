#include "taxolearn/operators/kernel_matrices.hpp"

#include <array>
#include <cmath>
#include <sstream>

#include "taxolearn/base/check.hpp"
#include "taxolearn/operators/block_sum.hpp"
#include "taxolearn/operators/gram.hpp"
#include "taxolearn/operators/tiled.hpp"

namespace taxolearn {
namespace {

/// Three digits and a unit.
std::string in_bytes(double bytes) {
  const std::array<const char*, 5> units{"B", "kB", "MB", "GB", "TB"};
  std::size_t unit = 0;
  for (; bytes >= 999.5 && unit + 1 < units.size(); ++unit) bytes /= 1e3;
  std::ostringstream text;
  text.precision(3);
  text << bytes << " " << units[unit];
  return text.str();
}

/// The operator that computes entries anew; of a linear block no entries are needed.
template <class T>
std::unique_ptr<Operator<T>> make_tiled(const std::shared_ptr<const Kernel>& kernel, const InputView& X,
                                        const Execution& execution) {
  if (!is_partly_linear(*kernel)) return std::make_unique<Tiled<T>>(kernel, X, execution);
  auto rest = std::make_unique<Tiled<T>>(other_kernels(*kernel), other_blocks(*kernel, X), execution);
  return std::make_unique<BlockSum<T>>(kernel, InputRows{X, {}}, std::move(rest), execution);
}

/// The operator with this factor of the kernel, or of its part that is not linear.
template <class T>
std::unique_ptr<Operator<T>> make_low_rank(const std::shared_ptr<const Kernel>& kernel, const InputView& X,
                                           const std::shared_ptr<const LowRankFactor>& factor,
                                           const Execution& execution) {
  if (!is_partly_linear(*kernel)) return std::make_unique<LowRank<T>>(kernel, X, factor, execution);
  auto rest = std::make_unique<LowRank<T>>(other_kernels(*kernel), other_blocks(*kernel, X), factor, execution);
  return std::make_unique<BlockSum<T>>(kernel, InputRows{X, {}}, std::move(rest), execution);
}

constexpr double bytes_of_factor = sizeof(double) + sizeof(float);  // per element, with its copy in single precision

}  // namespace

const char* algorithm_name(KernelAlgorithm algorithm) {
  switch (algorithm) {
    case KernelAlgorithm::automatic:
      return "auto";
    case KernelAlgorithm::gram:
      return "gram";
    case KernelAlgorithm::tiled:
      return "tiled";
    case KernelAlgorithm::low_rank:
      return "low_rank";
  }
  return "unknown";
}

KernelSettings make_kernel_settings(KernelAlgorithm algorithm, double memory_limit, std::optional<Index> rank,
                                    std::optional<double> tolerance) {
  KernelSettings settings;
  const bool is_approximate = rank.has_value() || tolerance.has_value();
  settings.algorithm =
      algorithm == KernelAlgorithm::automatic && is_approximate ? KernelAlgorithm::low_rank : algorithm;
  settings.memory_limit = memory_limit;
  if (rank.has_value()) settings.tolerance = 0.0;
  settings.rank = rank.value_or(settings.rank);
  settings.tolerance = tolerance.value_or(settings.tolerance);
  return settings;
}

KernelMatrices::KernelMatrices(std::vector<std::shared_ptr<const Kernel>> kernels, const InputView& X,
                               const KernelSettings& settings)
    : kernels_(std::move(kernels)), X_(X), settings_(settings), chosen_(settings.algorithm) {
  require(!kernels_.empty(), "there is no kernel, expected at least one");
  for (const auto& kernel : kernels_) require(kernel != nullptr, "a kernel is missing");
  require(settings.memory_limit >= 0.0, "memory_limit must be at least 0, got ", settings.memory_limit);
  require(settings.rank >= 0, "rank must be at least 0, got ", settings.rank);
  require(std::isfinite(settings.tolerance) && settings.tolerance >= 0.0,
          "rank_tolerance must be finite and at least 0, got ", settings.tolerance);
}

double KernelMatrices::work() const {
  const auto n = static_cast<double>(rows());
  return settings_.algorithm == KernelAlgorithm::low_rank && settings_.rank > 0
             ? 4.0 * n * static_cast<double>(std::min(settings_.rank, rows()))
             : 2.0 * n * n;
}

void KernelMatrices::choose(std::size_t size_of_number) {
  if (settings_.algorithm == KernelAlgorithm::low_rank) {
    chosen_ = KernelAlgorithm::low_rank;
    reason_ = "low_rank was asked for";
    return;
  }
  const double bytes = gram_bytes(rows(), count(), size_of_number);
  const std::string size = std::to_string(count()) + (count() == 1 ? " kernel matrix" : " kernel matrices") + " of " +
                           std::to_string(rows()) + (count() == 1 ? " rows takes " : " rows take ") + in_bytes(bytes);
  if (settings_.algorithm != KernelAlgorithm::automatic) {
    chosen_ = settings_.algorithm;
    reason_ = std::string(algorithm_name(chosen_)) + " was asked for; " + size;
  } else if (bytes <= settings_.memory_limit) {
    chosen_ = KernelAlgorithm::gram;
    reason_ = size + ", within memory_limit (" + in_bytes(settings_.memory_limit) + ")";
  } else {
    chosen_ = KernelAlgorithm::tiled;
    reason_ = size + ", more than memory_limit (" + in_bytes(settings_.memory_limit) +
              "): their entries are computed anew for every product; low_rank is a faster approximation";
  }
  bytes_ = chosen_ == KernelAlgorithm::gram ? bytes : 0.0;
}

template <>
Operators<float>& KernelMatrices::kept<float>() {
  return single_;
}
template <>
Operators<double>& KernelMatrices::kept<double>() {
  return double_;
}

template <class T>
Operators<T> KernelMatrices::make(const Execution& execution) {
  if (chosen_ == KernelAlgorithm::gram) return make_gram<T>(kernels_, X_, execution);
  Operators<T> out;
  if (chosen_ == KernelAlgorithm::low_rank) {
    factors(execution);
    bytes_ = 0.0;
    for (std::size_t l = 0; l < kernels_.size(); ++l) {
      out.push_back(make_low_rank<T>(kernels_[l], X_, factors_[l], execution));
      bytes_ += static_cast<double>(factors_[l]->L.size()) *
                (sizeof(T) == sizeof(double) ? static_cast<double>(sizeof(double)) : bytes_of_factor);
    }
    if (cut_ > 0) reason_ += "; memory_limit ended the rank at " + std::to_string(cut_);
    return out;
  }
  for (const auto& kernel : kernels_) out.push_back(make_tiled<T>(kernel, X_, execution));
  return out;
}

template <class T>
const Operators<T>& KernelMatrices::operators(const Execution& execution) {
  if (!kept<T>().empty()) return kept<T>();
  single_.clear();
  double_.clear();
  certifying_.clear();
  choose(sizeof(T));
  kept<T>() = make<T>(execution);
  return kept<T>();
}

template <class T>
Operators<T> KernelMatrices::subset(const std::vector<Index>& rows, const Execution& execution) {
  Operators<T> out;
  for (const auto& each : operators<T>(execution)) out.push_back(each->subset(rows, execution));
  return out;
}

const Operators<double>& KernelMatrices::certifying_operators(const Execution& execution) {
  if (!double_.empty()) return double_;
  if (!certifying_.empty()) return certifying_;
  for (std::size_t l = 0; l < kernels_.size(); ++l) {
    if (chosen_ == KernelAlgorithm::low_rank) {
      certifying_.push_back(make_low_rank<double>(kernels_[l], X_, factors(execution)[l], execution));
    } else {
      certifying_.push_back(make_tiled<double>(kernels_[l], X_, execution));
    }
  }
  return certifying_;
}

const std::vector<std::shared_ptr<const LowRankFactor>>& KernelMatrices::factors(const Execution& execution) {
  if (settings_.algorithm != KernelAlgorithm::low_rank || !factors_.empty()) return factors_;
  const double per_rank = bytes_of_factor * static_cast<double>(rows()) * static_cast<double>(count());
  const double affordable = settings_.memory_limit / std::max(per_rank, 1.0);
  require(affordable >= static_cast<double>(std::max<Index>(std::min(settings_.rank, rows()), 1)), "rank ",
          std::max<Index>(settings_.rank, 1), " takes ",
          in_bytes(per_rank * static_cast<double>(std::max<Index>(settings_.rank, 1))), " for ", rows(),
          " rows, more than memory_limit (", in_bytes(settings_.memory_limit), "); lower rank or raise memory_limit");
  const Index wanted = settings_.rank > 0 ? std::min(settings_.rank, rows()) : rows();
  const Index most = std::min(wanted, static_cast<Index>(std::min(affordable, static_cast<double>(rows()))));
  std::vector<std::shared_ptr<const LowRankFactor>> made;
  for (const auto& kernel : kernels_) {
    const bool partly = is_partly_linear(*kernel);
    const std::shared_ptr<const Kernel> own = partly ? other_kernels(*kernel) : kernel;
    const InputRows rows{partly ? other_blocks(*kernel, X_) : X_, {}};
    made.push_back(
        std::make_shared<const LowRankFactor>(incomplete_cholesky(*own, rows, most, settings_.tolerance, execution)));
  }
  factors_ = std::move(made);
  for (const auto& factor : factors_) {
    if (most < wanted && factor->rank() == most) cut_ = most;
  }
  return factors_;
}

template const Operators<float>& KernelMatrices::operators<float>(const Execution&);
template const Operators<double>& KernelMatrices::operators<double>(const Execution&);
template Operators<float> KernelMatrices::subset<float>(const std::vector<Index>&, const Execution&);
template Operators<double> KernelMatrices::subset<double>(const std::vector<Index>&, const Execution&);

}  // namespace taxolearn
