// Benchmark of the library's building blocks. Without options: a text-like matrix of the size of news20.
//
// The cases of cases.hpp run under a timer of this program, round robin, next to a measured roofline; or, if
// the program was compiled with Google Benchmark and gets one of its options (--benchmark_...), under that.
#include <algorithm>
#include <cstring>
#include <fstream>
#include <iostream>
#include <sstream>
#include <stdexcept>

#include "report.hpp"

#ifdef TAXOLEARN_HAVE_BENCHMARK
#include <benchmark/benchmark.h>
#endif

namespace taxolearn::bench {
namespace {

constexpr const char* usage =
    "taxolearn_bench [--csr FILE] [--json FILE] [--columns 20,160,1000] [--threads 1,2] [--only TEXT]\n"
    "                [--repeats N] [--seconds S] [--quick]\n"
    "  --csr      multiply with the matrix that `python -m bench dump` wrote instead of a made-up one\n"
    "  --json     also write the results there\n"
    "  --columns  numbers of classes; --threads: numbers of threads\n"
    "  --only     cases whose name contains the text\n"
    "  --repeats, --seconds  run each case at least that often and that long\n"
    "  --quick    a small matrix and short runs, to see that everything works\n"
    "With Google Benchmark: --benchmark_filter=REGEX and its other options run the same cases there.\n";

struct Options {
  std::string csr, json, only;
  Shape shape{{20, 160, 1000}, {1, 2}, 128};
  Repeats repeats;
  bool quick = false;
  bool google = false;
};

template <class T>
std::vector<T> numbers(const std::string& text) {
  std::vector<T> out;
  std::istringstream stream(text);
  for (std::string part; std::getline(stream, part, ',');) out.push_back(static_cast<T>(std::stol(part)));
  if (out.empty() || *std::min_element(out.begin(), out.end()) < 1)
    throw std::invalid_argument("\"" + text + "\" is not a list of positive numbers");
  return out;
}

Options parse(int count, char** arguments) {
  Options options;
  for (int k = 1; k < count; ++k) {
    const std::string name = arguments[k];
    const auto value = [&]() -> std::string {
      if (++k == count) throw std::invalid_argument(name + " needs a value");
      return arguments[k];
    };
    if (name.rfind("--benchmark_", 0) == 0) {
      options.google = true;
    } else if (name == "--csr") {
      options.csr = value();
    } else if (name == "--json") {
      options.json = value();
    } else if (name == "--only") {
      options.only = value();
    } else if (name == "--columns") {
      options.shape.columns = numbers<Index>(value());
    } else if (name == "--threads") {
      options.shape.threads = numbers<int>(value());
    } else if (name == "--repeats") {
      options.repeats.least = std::stoi(value());
    } else if (name == "--seconds") {
      options.repeats.seconds = std::stod(value());
    } else if (name == "--quick") {
      options.quick = true;
      options.repeats = {3, 50, 0.02};
      options.shape.columns = {20, 160};
    } else {
      throw std::invalid_argument("unknown option " + name);
    }
  }
  return options;
}

void run_table(const Csr<double>& X, const std::vector<Case>& cases, const Options& options) {
  Roofline roofline({5, 200, std::min(0.3, options.repeats.seconds)});
  print_machine(std::cout, X, options.shape, roofline);
  print_table_head(std::cout);
  std::vector<Measurement> rows;
  for (std::size_t first = 0; first < cases.size();) {
    std::vector<Prepared> group;
    std::vector<std::function<void()>> work;
    std::size_t last = first;
    for (; last < cases.size() && cases[last].group() == cases[first].group(); ++last) {
      group.push_back(cases[last].prepare());
      work.push_back(group.back().run);
    }
    const std::vector<Sample> times = time_interleaved(work, options.repeats);
    double fastest = times.front().median;
    for (const Sample& time : times) fastest = std::min(fastest, time.median);
    for (std::size_t k = first; k < last; ++k) {
      Measurement row = measure_bounds(cases[k], roofline);
      row.time = times[k - first];
      row.error = group[k - first].error();
      print_row(std::cout, row, fastest);
      if (!(row.error <= cases[k].tolerance)) throw std::runtime_error(cases[k].name() + ": wrong answer");
      rows.push_back(row);
    }
    first = last;
  }
  if (!options.json.empty()) {
    std::ofstream file(options.json);
    write_json(file, X, options.csr.empty() ? "Zipf" : "file", options.shape, roofline, rows);
    if (!file) throw std::runtime_error("cannot write " + options.json);
  }
}

#ifdef TAXOLEARN_HAVE_BENCHMARK
void run_google(const std::vector<Case>& cases, int count, char** arguments) {
  for (const Case& what : cases) {
    const auto body = [what](benchmark::State& state) {
      const Prepared prepared = what.prepare();
      prepared.run();
      for ([[maybe_unused]] auto round : state) prepared.run();
      const auto rate = [](double amount) {
        return benchmark::Counter(amount, benchmark::Counter::kIsIterationInvariantRate);
      };
      if (what.flops > 0) state.counters["flops"] = rate(what.flops);
      state.counters["bytes"] = rate(what.bytes);
    };
    benchmark::RegisterBenchmark(what.name().c_str(), body)->UseRealTime()->Unit(benchmark::kMillisecond);
  }
  std::vector<char*> own;
  for (int k = 0; k < count; ++k) {
    if (k == 0 || std::strncmp(arguments[k], "--benchmark_", 12) == 0) own.push_back(arguments[k]);
  }
  int own_count = static_cast<int>(own.size());
  benchmark::Initialize(&own_count, own.data());
  benchmark::RunSpecifiedBenchmarks();
}
#else
void run_google(const std::vector<Case>&, int, char**) {
  throw std::invalid_argument("compiled without Google Benchmark");
}
#endif

void run(int count, char** arguments) {
  const Options options = parse(count, arguments);
  const auto X = std::make_shared<const Csr<double>>(!options.csr.empty() ? read_csr(options.csr)
                                                     : options.quick      ? zipf_matrix(1000, 6000, 60, 1)
                                                                          : zipf_matrix(11314, 61188, 130, 1));
  std::vector<Case> cases = make_cases(X, options.shape);
  cases.erase(std::remove_if(cases.begin(), cases.end(),
                             [&](const Case& what) { return what.name().find(options.only) == std::string::npos; }),
              cases.end());
  if (options.google) {
    run_google(cases, count, arguments);
  } else {
    run_table(*X, cases, options);
  }
}

}  // namespace
}  // namespace taxolearn::bench

int main(int count, char** arguments) {
  if (count == 2 && (std::strcmp(arguments[1], "--help") == 0 || std::strcmp(arguments[1], "-h") == 0)) {
    std::cout << taxolearn::bench::usage;
    return 0;
  }
  try {
    taxolearn::bench::run(count, arguments);
  } catch (const std::exception& error) {
    std::cerr << "taxolearn_bench: " << error.what() << "\n" << taxolearn::bench::usage;
    return 1;
  }
  return 0;
}
