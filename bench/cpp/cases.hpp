// The table of what is timed. Both ways to run it (main.cpp) go through this table.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "roofline.hpp"

namespace taxolearn::bench {

struct Shape {
  std::vector<Index> columns;  ///< numbers of classes C
  std::vector<int> threads;
  Index dense_features = 128;
};

/// A case with its memory, ready to run.
struct Prepared {
  std::function<void()> run;
  std::function<double()> error;  ///< of the answer of the last run, relative, against plain double loops
};

struct Case {
  std::string kernel;     ///< what is computed
  std::string variant;    ///< by whom
  std::string precision;  ///< float or double
  Index columns = 0;
  int threads = 1;
  double flops = 0.0;                               ///< 4 C per nonzero or matrix entry, 3 per class and 4 per
                                                    ///< inner node of a tree; none counted for the softmax
  double exponentials = 0.0;                        ///< of the softmax, one per entry
  double bytes = 0.0;                               ///< compulsory traffic: every input once in, every result once out
  double tolerance = 0.0;                           ///< on the error
  std::function<double(Roofline&)> peak;            ///< flops per second of the processor in this precision
  std::function<double(Roofline&)> gather_seconds;  ///< least time of the row reads; empty where there are none
  std::function<Prepared()> prepare;

  std::string name() const;
  /// Cases of one group compute the same thing and are timed round robin.
  std::string group() const;
};

std::vector<Case> make_cases(std::shared_ptr<const Csr<double>> X, const Shape& shape);

}  // namespace taxolearn::bench
