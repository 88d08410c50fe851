#include <doctest/doctest.h>

#include "taxolearn/select/folds.hpp"

using namespace taxolearn;

TEST_CASE("folds list the rows that they hold out and those that they train on") {
  const Folds folds{{1, 0, -1, 1}, 2};
  CHECK(folds.held_out(0) == std::vector<Index>{1});
  CHECK(folds.trained(0) == std::vector<Index>{0, 2, 3});
  CHECK(folds.held_out(1) == std::vector<Index>{0, 3});
  CHECK(folds.trained(1) == std::vector<Index>{1, 2});
}
