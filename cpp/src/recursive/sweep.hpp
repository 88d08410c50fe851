// One sweep of a solver over all classes.
#pragma once

#include <memory>

#include "class_blocks.hpp"
#include "taxolearn/base/parallel.hpp"

namespace taxolearn {

struct SweepSettings {
  bool single = true;  ///< precision of the descent
  double tolerance = 1e-3;
  std::uint64_t seed = 0;
};

/// What a sweep found on its way; the certificate tells how good it really is.
struct SweepResult {
  double gap = 0.0;
  double objective = 0.0;
  double visits = 0.0;  ///< of a row for a class
};

class Sweeps {
 public:
  virtual ~Sweeps() = default;
  virtual SweepResult sweep(const SweepSettings& settings, const Execution& execution) = 0;

  /// alpha_il by row.
  virtual std::vector<SparseColumn> duals() const = 0;
};

/// Classes that stand alone, block after block. All begin at dual variables, by row.
std::unique_ptr<Sweeps> separate_sweeps(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals,
                                        const Execution& execution);
std::unique_ptr<Sweeps> joint_sweeps(const ClassBlocks& blocks, std::vector<SparseColumn> duals);

/// The same for few classes, where all numbers of a row fit in a dense array.
std::unique_ptr<Sweeps> narrow_sweeps(const ClassBlocks& blocks, std::vector<SparseColumn> duals);
bool is_narrow(const ClassBlocks& blocks);

std::unique_ptr<Sweeps> alternating_sweeps(const ClassBlocks& blocks, const std::vector<SparseColumn>& duals,
                                           const Execution& execution);

}  // namespace taxolearn
