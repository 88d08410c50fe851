// Choices by name.
#pragma once

#include <map>
#include <string>

#include "taxolearn/base/check.hpp"

namespace taxolearn::python {

/// The value of this name; an unknown name raises an error that lists all.
template <class Value>
Value choose(const char* argument, const std::string& name, const std::map<std::string, Value>& names) {
  const auto found = names.find(name);
  if (found != names.end()) return found->second;
  std::string expected;
  for (const auto& entry : names) expected += (expected.empty() ? "\"" : ", \"") + entry.first + "\"";
  require(false, argument, " is \"", name, "\", expected one of ", expected);
  return names.begin()->second;
}

}  // namespace taxolearn::python
