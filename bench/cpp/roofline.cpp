#include "roofline.hpp"

#include <unistd.h>

#include <Eigen/Core>
#include <algorithm>
#include <cmath>
#include <fstream>
#include <random>

#include "taxolearn/base/parallel.hpp"
#include "taxolearn/operators/sparse_product.hpp"

namespace taxolearn::bench {
namespace {

template <class T>
constexpr const char* precision_name = sizeof(T) == 4 ? "float" : "double";

/// Rows of `Width` numbers per index, added up in registers.
template <class T, int Width>
void add_rows(const std::int32_t* indices, Index count, const T* panel) {
  using Row = Eigen::Array<T, Width, 1>;
  using RowMap = Eigen::Map<const Row>;
  Row even = Row::Zero();
  Row odd = Row::Zero();
  Index k = 0;
  for (; k + 1 < count; k += 2) {
    even += RowMap(panel + indices[k] * Index{Width});
    odd += RowMap(panel + indices[k + 1] * Index{Width});
  }
  if (k < count) even += RowMap(panel + indices[k] * Index{Width});
  even += odd;
  keep(even.data());
}

template <class T>
using AddRows = void (*)(const std::int32_t*, Index, const T*);

template <class T>
AddRows<T> add_rows_of(Index width) {
  static const AddRows<T> kernels[] = {add_rows<T, 8>,  add_rows<T, 16>, add_rows<T, 24>, add_rows<T, 32>,
                                       add_rows<T, 40>, add_rows<T, 48>, add_rows<T, 56>, add_rows<T, 64>,
                                       add_rows<T, 72>, add_rows<T, 80>, add_rows<T, 88>, add_rows<T, 96>};
  return kernels[width / panel_granularity - 1];
}

}  // namespace

template <class T>
double peak_flops(int threads, const Repeats& repeats) {
  using Packet = typename Eigen::internal::packet_traits<T>::type;
  constexpr int chains = 12;  // covers latency times throughput of two multiply-add units
  constexpr Index steps = 1 << 18;
  constexpr Index lanes = Eigen::internal::packet_traits<T>::size;
  const auto work = [&] {
    parallel_for(threads, {threads, nullptr}, [&](Index) {
      const Packet factor = Eigen::internal::pset1<Packet>(T(0.999));
      const Packet addend = Eigen::internal::pset1<Packet>(T(1e-3));
      Packet x[chains];
      for (int c = 0; c < chains; ++c) x[c] = Eigen::internal::pset1<Packet>(T(c));
      for (Index step = 0; step < steps; ++step) {
        for (int c = 0; c < chains; ++c) x[c] = Eigen::internal::pmadd(x[c], factor, addend);
      }
      for (int c = 1; c < chains; ++c) x[0] = Eigen::internal::padd(x[0], x[c]);
      keep(x);
    });
  };
  const double flops = 2.0 * chains * static_cast<double>(lanes * steps) * threads;
  return flops / time_one(work, repeats).least;
}

double peak_exponentials(int threads, const Repeats& repeats) {
  constexpr Index size = 1024, rounds = 256;
  const auto work = [&] {
    parallel_for(threads, {threads, nullptr}, [&](Index) {
      Eigen::ArrayXd x = Eigen::ArrayXd::LinSpaced(size, -20.0, 0.0);
      Eigen::ArrayXd y(size);
      for (Index round = 0; round < rounds; ++round) {
        keep(x.data());
        y = x.exp();
        keep(y.data());
      }
    });
  };
  return static_cast<double>(size * rounds * threads) / time_one(work, repeats).least;
}

double triad_bandwidth(double bytes, int threads, const Repeats& repeats) {
  const Index share = static_cast<Index>(bytes / 24.0 / threads);
  const Index size = share * threads;
  const Index rounds = std::max<Index>(1, static_cast<Index>(2e7 / bytes));
  Buffer<double> a(static_cast<std::size_t>(size)), b(a.size()), c(a.size());
  const auto each = [&](const auto& body) {
    parallel_for(threads, {threads, nullptr}, [&](Index thread) { body(thread * share, (thread + 1) * share); });
  };
  each([&](Index first, Index last) {
    for (Index i = first; i < last; ++i) {
      const auto at = static_cast<std::size_t>(i);
      a[at] = b[at] = c[at] = 1.0;
    }
  });
  const auto work = [&] {
    each([&](Index first, Index last) {
      const Index count = last - first;
      Eigen::Map<Eigen::ArrayXd> to(a.data() + first, count);
      const Eigen::Map<const Eigen::ArrayXd> one(b.data() + first, count), two(c.data() + first, count);
      for (Index round = 0; round < rounds; ++round) {
        to = one + 3.0 * two;
        keep(a.data());
      }
    });
  };
  return 24.0 * static_cast<double>(size * rounds) / time_one(work, repeats).least;
}

template <class T>
double gather_seconds(const std::vector<std::int32_t>& indices, Index rows, Index width, int threads,
                      const Repeats& repeats) {
  const Buffer<T> panel(static_cast<std::size_t>(rows * width), T(1));
  const AddRows<T> kernel = add_rows_of<T>(width);
  const Blocks blocks(static_cast<Index>(indices.size()), 4096);
  const auto work = [&] {
    parallel_for(blocks.number(), {threads, nullptr}, [&](Index block) {
      kernel(indices.data() + blocks.first(block), blocks.length(block), panel.data());
    });
  };
  return time_one(work, repeats).least;
}

std::string processor() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    if (line.rfind("model name", 0) == 0) return line.substr(line.find(':') + 2);
  }
  return "unknown processor";
}

double last_cache_bytes() {
#ifdef _SC_LEVEL3_CACHE_SIZE
  const long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
  if (bytes > 0) return static_cast<double>(bytes);
#endif
  return 32.0 * 1024 * 1024;
}

template <class Measure>
double Roofline::once(const std::string& what, double size, int threads, const Measure& measure) {
  const auto key = std::make_tuple(what, size, threads);
  const auto found = known_.find(key);
  if (found != known_.end()) return found->second;
  return known_[key] = measure();
}

template <class T>
double Roofline::flops(int threads) {
  return once(std::string("flops ") + precision_name<T>, 0, threads, [&] { return peak_flops<T>(threads, repeats_); });
}

double Roofline::exponentials(int threads) {
  return once("exponentials", 0, threads, [&] { return peak_exponentials(threads, repeats_); });
}

double Roofline::bandwidth(double bytes, int threads) {
  const double limited = std::clamp(std::exp2(std::floor(std::log2(bytes))), 65536.0, 8.0 * last_cache_bytes());
  return once("triad", limited, threads, [&] { return triad_bandwidth(limited, threads, repeats_); });
}

double Roofline::memory_bandwidth(int threads) { return bandwidth(1e300, threads); }

template <class T>
double Roofline::product_gathers(const Csr<double>& A, const Csr<double>& transposed, Index m, int threads) {
  const Index width = panel_width_for<T>(m);
  const double panels = std::ceil(static_cast<double>(m) / static_cast<double>(width));
  const double pass = once(std::string("gathers ") + precision_name<T>, static_cast<double>(width), threads, [&] {
    return gather_seconds<T>(transposed.columns, A.rows, width, threads, repeats_) +
           gather_seconds<T>(A.columns, A.cols, width, threads, repeats_);
  });
  return panels * pass;
}

template <class T>
double Roofline::random_gather_bandwidth(Index rows, Index m, int threads) {
  const Index width = panel_width_for<T>(m);
  const double bytes = static_cast<double>(rows * width) * sizeof(T);
  return once(std::string("random gathers ") + precision_name<T>, bytes, threads, [&] {
    std::mt19937 random(1);
    std::uniform_int_distribution<std::int32_t> uniform(0, static_cast<std::int32_t>(rows) - 1);
    std::vector<std::int32_t> indices(1 << 20);
    for (std::int32_t& index : indices) index = uniform(random);
    return static_cast<double>(indices.size()) * static_cast<double>(width) * sizeof(T) /
           gather_seconds<T>(indices, rows, width, threads, repeats_);
  });
}

#define TAXOLEARN_INSTANTIATE(T)                                                                          \
  template double peak_flops<T>(int, const Repeats&);                                                     \
  template double gather_seconds<T>(const std::vector<std::int32_t>&, Index, Index, int, const Repeats&); \
  template double Roofline::flops<T>(int);                                                                \
  template double Roofline::product_gathers<T>(const Csr<double>&, const Csr<double>&, Index, int);       \
  template double Roofline::random_gather_bandwidth<T>(Index, Index, int);
TAXOLEARN_INSTANTIATE(float)
TAXOLEARN_INSTANTIATE(double)
#undef TAXOLEARN_INSTANTIATE

}  // namespace taxolearn::bench
