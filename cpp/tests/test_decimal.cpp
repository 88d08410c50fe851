#include <doctest/doctest.h>

#include <cmath>
#include <cstdio>
#include <cstring>
#include <limits>
#include <random>
#include <string>

#include "../src/data/decimal.hpp"

using namespace taxolearn;

namespace {

/// A number as text with that many digits, of any finite double but zero, or beyond.
[[maybe_unused]] std::string random_number(std::mt19937_64& random) {
  const int digits = std::uniform_int_distribution<int>(1, 40)(random);
  std::string text;
  for (int k = 0; k < digits; ++k)
    text += static_cast<char>('0' + std::uniform_int_distribution<int>(k == 0, 9)(random));
  const int point = std::uniform_int_distribution<int>(0, digits)(random);
  if (point < digits) text.insert(static_cast<std::size_t>(point), ".");
  return text + "e" + std::to_string(std::uniform_int_distribution<int>(-360, 330)(random));
}

bool same(double a, double b) { return std::memcmp(&a, &b, sizeof a) == 0; }

[[maybe_unused]] const char* const hard[] = {
    "9007199254740993",                      // 2^53 + 1: half way
    "9007199254740993.0000000000000000001",  // a little more
    "2.2250738585072011e-308",               // next to the smallest normal number
    "4.9406564584124654e-324",               // the smallest number
    "2.4703282292062328e-324",               // a little more than half of it
    "2.4703282292062327e-324",               // a little less
    "1.7976931348623157e308",                // the largest
    "1.7976931348623159e308",                // rounds to infinity
    "1e309",
    "1e-400",
    "123456789012345678901234567890e-10",
};

}  // namespace

#if defined(__cpp_lib_to_chars) && !defined(_WIN32)
TEST_CASE("both conversions of decimal numbers give the same bits") {
  const auto check = [](const std::string& text) {
    const char* const end = text.data() + text.size();
    const double by_locale = nearest_by_locale(text.data(), end);
    INFO(text);
    CHECK(same(nearest_by_charconv(text.data(), end, std::isinf(by_locale)), by_locale));
  };
  for (const char* const text : hard) check(text);
  std::mt19937_64 random(1);
  for (int k = 0; k < 20000; ++k) check(random_number(random));
}
#endif

TEST_CASE("read_decimal gives what the nearest double was written as") {
  std::mt19937_64 random(2);
  for (int k = 0; k < 20000; ++k) {
    const std::uint64_t bits = random();
    double value;
    std::memcpy(&value, &bits, sizeof value);
    if (!std::isfinite(value)) continue;
    char text[64];
    std::snprintf(text, sizeof text, "%.17g;", value);
    const char* at = text;
    double read = 0.0;
    INFO(text);
    REQUIRE(read_decimal(at, read));
    CHECK(*at == ';');
    CHECK(same(read, value));
  }
}

TEST_CASE("read_decimal refuses what is too large and takes what is too small for zero") {
  const auto read = [](const char* text, double& value) { return read_decimal(text, value); };
  double value = 5.0;
  CHECK_FALSE(read("1.7976931348623159e308 ", value));
  CHECK_FALSE(read("-1e309 ", value));
  CHECK(value == 5.0);
  CHECK(read("1e-400 ", value));
  CHECK(value == 0.0);
  CHECK(read("-2.4703282292062327e-324 ", value));
  CHECK(value == 0.0);
  CHECK(std::signbit(value));
}
