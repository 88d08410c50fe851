#include "report.hpp"

#include <Eigen/Core>
#include <algorithm>
#include <cstdio>
#include <thread>

namespace taxolearn::bench {
namespace {

template <class... Values>
std::string format(const char* pattern, Values... values) {
  char line[512];
  std::snprintf(line, sizeof line, pattern, values...);
  return line;
}

std::string eigen_version() {
  return format("%d.%d.%d", EIGEN_WORLD_VERSION, EIGEN_MAJOR_VERSION, EIGEN_MINOR_VERSION);
}

Index most_columns(const Shape& shape) { return *std::max_element(shape.columns.begin(), shape.columns.end()); }

}  // namespace

Measurement measure_bounds(const Case& what, Roofline& roofline) {
  Measurement row;
  row.what = what;
  const auto consider = [&](double seconds, const char* limit) {
    if (seconds <= row.roof_seconds) return;
    row.roof_seconds = seconds;
    row.limit = limit;
  };
  consider(what.flops / what.peak(roofline), "flops");
  consider(what.exponentials / roofline.exponentials(what.threads), "exponentials");
  consider(what.bytes / roofline.bandwidth(what.bytes, what.threads),
           what.bytes > last_cache_bytes() ? "memory" : "cache");
  if (what.gather_seconds) row.gather_seconds = what.gather_seconds(roofline);
  return row;
}

void print_machine(std::ostream& out, const Csr<double>& X, const Shape& shape, Roofline& roofline) {
  out << processor() << ", " << std::thread::hardware_concurrency() << " cores, compiled for " << TAXOLEARN_SIMD_LEVEL
      << " by " << __VERSION__ << ", Eigen " << eigen_version() << "\n";
  out << "X: " << X.rows << " x " << X.cols << ", " << X.nonzeros() << " nonzeros; last cache "
      << format("%.0f MiB", last_cache_bytes() / 1048576.0) << "\n";
  for (const int threads : shape.threads) {
    out << format("%d thread%s: %.0f / %.0f GFlop/s (float / double), %.2f G exponentials/s, %.1f GB/s triad in memory",
                  threads, threads == 1 ? "" : "s", 1e-9 * roofline.flops<float>(threads),
                  1e-9 * roofline.flops<double>(threads), 1e-9 * roofline.exponentials(threads),
                  1e-9 * roofline.memory_bandwidth(threads));
    const Index m = most_columns(shape);
    out << format(", random gathers of panel rows %.0f / %.0f GB/s from %td rows, %.0f / %.0f from %td\n",
                  1e-9 * roofline.random_gather_bandwidth<float>(X.rows, m, threads),
                  1e-9 * roofline.random_gather_bandwidth<double>(X.rows, m, threads), X.rows,
                  1e-9 * roofline.random_gather_bandwidth<float>(X.cols, m, threads),
                  1e-9 * roofline.random_gather_bandwidth<double>(X.cols, m, threads), X.cols);
  }
  out << "\nGB/s     compulsory traffic over time: inputs once in, results once out; X^T S is not counted.\n"
         "roof     share of the roofline: the least time that arithmetic (multiply-adds in registers; exponentials\n"
         "         by Eigen), or compulsory traffic at the triad bandwidth of a working set of that size, allows;\n"
         "         'of' names which of them binds: flops, exponentials, memory, or cache (the set fits the last one).\n"
         "gather   share of the gather bound: the time of reading one row of S and one of X^T S per nonzero, in the\n"
         "         order of the matrix (features by frequency) and the library's panels, doing nothing else with it.\n"
         "slower   time over that of the fastest variant of the same case.\n\n";
}

void print_table_head(std::ostream& out) {
  out << format("%-17s %-7s %5s %2s %-13s %10s %9s %8s %7s %-12s %7s %7s %8s\n", "kernel", "type", "C", "t", "variant",
                "ms", "GFlop/s", "GB/s", "roof", "of", "gather", "slower", "error");
}

void print_row(std::ostream& out, const Measurement& row, double fastest) {
  const Case& what = row.what;
  const std::string gflops = what.flops > 0 ? format("%.1f", 1e-9 * what.flops / row.time.median) : "-";
  const std::string gather =
      row.gather_seconds > 0 ? format("%.0f %%", 100 * row.gather_seconds / row.time.median) : "-";
  out << format("%-17s %-7s %5td %2d %-13s %10.3f %9s %8.2f %5.0f %% %-12s %7s %7.2f %8.0e\n", what.kernel.c_str(),
                what.precision.c_str(), what.columns, what.threads, what.variant.c_str(), 1e3 * row.time.median,
                gflops.c_str(), 1e-9 * what.bytes / row.time.median, 100 * row.roof_seconds / row.time.median,
                row.limit.c_str(), gather.c_str(), row.time.median / fastest, row.error)
      << std::flush;
}

void write_json(std::ostream& out, const Csr<double>& X, const std::string& source, const Shape& shape,
                Roofline& roofline, const std::vector<Measurement>& rows) {
  out << "{\n\"machine\": {\"processor\": \"" << processor() << "\", \"cores\": " << std::thread::hardware_concurrency()
      << ", \"simd\": \"" << TAXOLEARN_SIMD_LEVEL << "\", \"compiler\": \"" << __VERSION__ << "\", \"eigen\": \""
      << eigen_version() << format("\", \"last_cache_bytes\": %.0f,\n  \"measured\": [", last_cache_bytes());
  const char* separator = "";
  for (const int threads : shape.threads) {
    const Index m = most_columns(shape);
    out << separator
        << format(
               "\n    {\"threads\": %d, \"flops_float\": %.4g, \"flops_double\": %.4g, \"exponentials\": %.4g, "
               "\"memory_bandwidth\": %.4g, ",
               threads, roofline.flops<float>(threads), roofline.flops<double>(threads), roofline.exponentials(threads),
               roofline.memory_bandwidth(threads))
        << format("\"random_gather_float\": [%.4g, %.4g], \"random_gather_double\": [%.4g, %.4g]}",
                  roofline.random_gather_bandwidth<float>(X.rows, m, threads),
                  roofline.random_gather_bandwidth<float>(X.cols, m, threads),
                  roofline.random_gather_bandwidth<double>(X.rows, m, threads),
                  roofline.random_gather_bandwidth<double>(X.cols, m, threads));
    separator = ",";
  }
  out << format("\n  ]},\n\"problem\": {\"source\": \"%s\", \"rows\": %td, \"cols\": %td, \"nonzeros\": %td},\n",
                source.c_str(), X.rows, X.cols, X.nonzeros())
      << "\"cases\": [";
  separator = "";
  for (const Measurement& row : rows) {
    const Case& what = row.what;
    out << separator
        << format(
               "\n  {\"kernel\": \"%s\", \"variant\": \"%s\", \"precision\": \"%s\", \"columns\": %td, "
               "\"threads\": %d, ",
               what.kernel.c_str(), what.variant.c_str(), what.precision.c_str(), what.columns, what.threads)
        << format(
               "\"seconds\": %.6g, \"least\": %.6g, \"most\": %.6g, \"repeats\": %d, \"flops\": %.6g, "
               "\"bytes\": %.6g, ",
               row.time.median, row.time.least, row.time.most, row.time.repeats, what.flops, what.bytes)
        << format("\"roof_seconds\": %.6g, \"limit\": \"%s\", \"gather_seconds\": %.6g, \"error\": %.3g}",
                  row.roof_seconds, row.limit.c_str(), row.gather_seconds, row.error);
    separator = ",";
  }
  out << "\n]\n}\n";
}

}  // namespace taxolearn::bench
