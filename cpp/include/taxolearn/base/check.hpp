// Checks of arguments. Bad input raises InvalidArgument with a sentence that names the argument, what came
// and what was expected; bugs are asserts.
#pragma once

#include <sstream>
#include <stdexcept>
#include <string>

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

class InvalidArgument : public std::invalid_argument {
 public:
  using std::invalid_argument::invalid_argument;
};

/// Throws InvalidArgument with the concatenated parts unless the condition holds.
template <class... Parts>
void require(bool condition, const Parts&... parts) {
  if (condition) return;
  std::ostringstream message;
  (message << ... << parts);
  throw InvalidArgument(message.str());
}

template <class T>
std::string shape(const DenseView<T>& view) {
  return "(" + std::to_string(view.rows) + ", " + std::to_string(view.cols) + ")";
}

template <class T>
void require_shape(const char* name, const DenseView<T>& view, Index rows, Index cols) {
  require(view.rows == rows && view.cols == cols, name, " has shape ", shape(view), ", expected (", rows, ", ", cols,
          ")");
}

/// Offsets must start at 0 and never fall, columns must lie in [0, cols) and not fall within a row.
template <class Value, class Column>
void require_valid(const char* name, const SparseView<Value, Column>& view);

}  // namespace taxolearn
