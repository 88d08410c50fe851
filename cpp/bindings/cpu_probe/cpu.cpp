// Tells which x86-64 level (v2, v3, v4 of the System V ABI) this processor and operating system run.
//
// Compiled at the baseline, so that it is safe to import anywhere.

#include <pybind11/pybind11.h>

#include <sstream>
#include <string>

#if defined(__x86_64__) && (defined(__GNUC__) || defined(__clang__))
#define TAXOLEARN_PROBE_X86 1
#include <cpuid.h>
#endif

namespace py = pybind11;

namespace {

#ifdef TAXOLEARN_PROBE_X86

// Features for which older compilers have no name in __builtin_cpu_supports. Those that need the operating
// system to save wide registers (f16c) are safe because avx, which __builtin_cpu_supports checks in full,
// comes with them.
struct CpuidBits {
  unsigned basic_ecx = 0;     // leaf 1
  unsigned extended_ecx = 0;  // leaf 0x80000001

  CpuidBits() {
    unsigned eax, ebx, ecx, edx;
    if (__get_cpuid(1, &eax, &ebx, &ecx, &edx)) basic_ecx = ecx;
    if (__get_cpuid(0x80000001, &eax, &ebx, &ecx, &edx)) extended_ecx = ecx;
  }
  bool basic(int bit) const { return (basic_ecx >> bit) & 1u; }
  bool extended(int bit) const { return (extended_ecx >> bit) & 1u; }
};

bool supports_v2(const CpuidBits& bits) {
  const bool cmpxchg16b = bits.basic(13), lahf = bits.extended(0);
  return cmpxchg16b && lahf && __builtin_cpu_supports("popcnt") && __builtin_cpu_supports("sse3") &&
         __builtin_cpu_supports("ssse3") && __builtin_cpu_supports("sse4.1") && __builtin_cpu_supports("sse4.2");
}

bool supports_v3(const CpuidBits& bits) {
  const bool movbe = bits.basic(22), f16c = bits.basic(29), lzcnt = bits.extended(5);
  return movbe && f16c && lzcnt && __builtin_cpu_supports("avx") && __builtin_cpu_supports("avx2") &&
         __builtin_cpu_supports("fma") && __builtin_cpu_supports("bmi") && __builtin_cpu_supports("bmi2");
}

bool supports_v4() {
  return __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512cd") && __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}

std::string level() {
  __builtin_cpu_init();
  const CpuidBits bits;
  if (!supports_v2(bits)) return "generic";
  if (!supports_v3(bits)) return "v2";
  return supports_v4() ? "v4" : "v3";
}

#else

std::string level() { return "generic"; }

#endif

py::tuple built_levels() {
  std::istringstream words(TAXOLEARN_BUILT_LEVELS);
  py::list levels;
  for (std::string word; words >> word;) levels.append(word);
  return py::tuple(levels);
}

}  // namespace

PYBIND11_MODULE(_cpu, m) {
  m.doc() = "What the processor runs and what was built.";
  m.def("level", &level, "Highest level of this processor: 'v4', 'v3', 'v2' or 'generic'.");
  m.def("built_levels", &built_levels, "Levels for which a module _core_<level> was built.");
}
