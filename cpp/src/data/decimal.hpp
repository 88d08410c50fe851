// Decimal numbers as text, to the nearest double.
#pragma once

#include <charconv>
#include <cmath>
#include <cstdint>
#include <limits>
#include <string>

// Not every standard library reads floating point numbers by std::from_chars (libc++ does since LLVM 20). Those that do
// not are on systems with strtod_l.
#ifndef _WIN32
#include <locale.h>
#include <stdlib.h>
#ifdef __APPLE__
#include <xlocale.h>
#endif
#endif

namespace taxolearn {

inline bool is_digit(char c) { return static_cast<unsigned char>(c - '0') < 10; }

#ifdef __cpp_lib_to_chars
/// The double nearest to the decimal number from first to last, without a sign: infinity if it is too large, zero if it
/// is too small. If it is one of the two, `large` says which.
inline double nearest_by_charconv(const char* first, const char* last, bool large) {
  double value = 0.0;
  const std::from_chars_result result = std::from_chars(first, last, value);
  if (result.ec == std::errc::result_out_of_range) return large ? std::numeric_limits<double>::infinity() : 0.0;
  return value;
}
#endif

#ifndef _WIN32
/// The same by the function of C, in its own locale: that of the user may write a comma for the point.
inline double nearest_by_locale(const char* first, const char* last) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(std::string(first, last).c_str(), nullptr, plain);
}
#endif

inline double nearest_double(const char* first, const char* last, [[maybe_unused]] bool large) {
#ifdef __cpp_lib_to_chars
  return nearest_by_charconv(first, last, large);
#else
  return nearest_by_locale(first, last);
#endif
}

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
    const double nearest = nearest_double(magnitude, p, exponent > 0);
    if (std::isinf(nearest)) return false;
    value = nearest;
  }
  if (negative) value = -value;
  at = p;
  return true;
}

}  // namespace taxolearn
