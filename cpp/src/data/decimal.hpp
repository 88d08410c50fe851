// Decimal numbers as text, to the nearest double.
#pragma once

#include <charconv>
#include <cstdint>

namespace taxolearn {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

/// Reads [+-]digits[.digits][(e|E)[+-]digits] and moves `at` behind it. False, and nothing moved, if there is no such
/// number or it is too large; too small ones are zero. A character that belongs to no number must come at last.
/// Up to 2^53 with a power of ten up to 22, both exact doubles, one rounded operation gives the nearest double (Clinger
/// 1990); the standard library's slower conversion does the rest.
inline bool read_decimal(const char*& at, double& value) {
  static constexpr double powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
  constexpr std::int64_t exact_power = 22;
  constexpr std::uint64_t exact_digits = std::uint64_t{1} << 53;
  constexpr std::uint64_t room = 1000000000000000000;  // one more digit still fits
  constexpr std::int64_t largest_exponent = 1000000000;

  const char* p = at;
  const bool negative = *p == '-';
  if (*p == '-' || *p == '+') ++p;
  const char* const magnitude = p;
  std::uint64_t digits = 0;
  std::int64_t exponent = 0;
  bool whole = true;  // all digits are in `digits`
  const auto take = [&](std::int64_t step_kept, std::int64_t step_dropped) {
    if (digits < room) {
      digits = 10 * digits + static_cast<std::uint64_t>(*p - '0');
      exponent += step_kept;
    } else {
      whole = whole && *p == '0';
      exponent += step_dropped;
    }
    ++p;
  };
  while (is_digit(*p)) take(0, 1);
  bool any = p != magnitude;
  if (*p == '.') {
    const char* const fraction = ++p;
    while (is_digit(*p)) take(-1, 0);
    any = any || p != fraction;
  }
  if (!any) return false;
  if (*p == 'e' || *p == 'E') {
    ++p;
    const bool below = *p == '-';
    if (*p == '-' || *p == '+') ++p;
    if (!is_digit(*p)) return false;
    std::int64_t power = 0;
    for (; is_digit(*p); ++p) {
      if (power < largest_exponent) power = 10 * power + (*p - '0');
    }
    exponent += below ? -power : power;
  }
  if (digits == 0 && whole) {
    value = 0.0;
  } else if (whole && digits <= exact_digits && exponent >= -exact_power && exponent <= exact_power) {
    const auto exact = static_cast<double>(digits);
    value = exponent < 0 ? exact / powers[-exponent] : exact * powers[exponent];
  } else {
    const std::from_chars_result result = std::from_chars(magnitude, p, value);
    if (result.ec == std::errc::result_out_of_range) {
      if (exponent > 0) return false;
      value = 0.0;
    } else if (result.ec != std::errc() || result.ptr != p) {
      return false;
    }
  }
  if (negative) value = -value;
  at = p;
  return true;
}

}  // namespace taxolearn
