#include "cases.hpp"

#include <algorithm>
#include <cmath>

#include "rivals.hpp"
#include "taxolearn/base/parallel.hpp"
#include "taxolearn/base/vector.hpp"
#include "taxolearn/couplings/tree.hpp"
#include "taxolearn/likelihood/softmax.hpp"
#include "taxolearn/operators/linear.hpp"

namespace taxolearn::bench {
namespace {

template <class T>
constexpr const char* precision_name = sizeof(T) == 4 ? "float" : "double";

/// A made-up number in [-1, 1) for every position, the same in every layout.
double entry(Index i, Index c) {
  auto bits = static_cast<std::uint64_t>(i) * 0x9e3779b97f4a7c15u + static_cast<std::uint64_t>(c) * 0xbf58476d1ce4e5b9u;
  bits ^= bits >> 30;
  bits *= 0x94d049bb133111ebu;
  bits ^= bits >> 31;
  return static_cast<double>(static_cast<std::int64_t>(bits)) / 9223372036854775808.0;
}

template <class T>
Matrix<T> fill(Index rows, Index cols, bool column_major = false) {
  Matrix<T> S(rows, cols);
  for (Index i = 0; i < rows; ++i) {
    for (Index c = 0; c < cols; ++c) S.data()[column_major ? c * rows + i : i * cols + c] = static_cast<T>(entry(i, c));
  }
  return S;
}

/// Largest error of some entries of X (X^T S) relative to the largest of them; get(i, c) reads the answer.
double product_error(const Csr<double>& X, Index m, const std::function<double(Index, Index)>& get) {
  std::vector<double> features(static_cast<std::size_t>(X.cols));
  double largest = 0.0, error = 0.0;
  const auto each = [&](Index i, const auto& body) {
    for (Index k = X.offsets[static_cast<std::size_t>(i)]; k < X.offsets[static_cast<std::size_t>(i) + 1]; ++k) {
      const auto at = static_cast<std::size_t>(k);
      body(features[static_cast<std::size_t>(X.columns[at])], X.values[at]);
    }
  };
  for (const Index c : {Index{0}, m / 2, m - 1}) {
    std::fill(features.begin(), features.end(), 0.0);
    for (Index i = 0; i < X.rows; ++i) each(i, [&](double& f, double x) { f += x * entry(i, c); });
    for (Index i = 0; i < X.rows; i += std::max<Index>(1, X.rows / 50)) {
      double sum = 0.0;
      each(i, [&](double f, double x) { sum += x * f; });
      largest = std::max(largest, std::abs(sum));
      error = std::max(error, std::abs(sum - get(i, c)));
    }
  }
  return error / largest;
}

template <class T>
void add_sparse(std::vector<Case>& cases, const std::shared_ptr<const Csr<double>>& X, Index m, int threads) {
  struct Compact {
    Csr<double> X, transpose;
  };
  // Shared by all cases and made when a bound is first asked for.
  static std::weak_ptr<const Csr<double>> source;
  static std::shared_ptr<const Compact> compact;
  Case row;
  row.kernel = "X (X'S) sparse";
  row.precision = precision_name<T>;
  row.columns = m;
  row.threads = threads;
  row.flops = 4.0 * static_cast<double>(X->nonzeros()) * static_cast<double>(m);
  row.bytes = 2.0 * static_cast<double>(X->rows * m) * sizeof(T) +
              static_cast<double>(X->nonzeros()) * (sizeof(T) + sizeof(std::int32_t));
  row.tolerance = sizeof(T) == 4 ? 1e-4 : 1e-11;
  row.peak = [threads](Roofline& roofline) { return roofline.flops<T>(threads); };
  row.gather_seconds = [X, m, threads](Roofline& roofline) {
    if (source.lock() != X) {
      Csr<double> A = most_frequent_first(*X);
      Csr<double> B = transposed(A);
      compact = std::make_shared<const Compact>(Compact{std::move(A), std::move(B)});
      source = X;
    }
    return roofline.product_gathers<T>(compact->X, compact->transpose, m, threads);
  };

  row.variant = "taxolearn";
  row.prepare = [X, m, threads] {
    const Execution execution{threads, nullptr};
    const std::shared_ptr<Operator<T>> product = make_linear<T>(X->view(), 1.0, LinearAlgorithm::sparse, execution);
    const auto S = std::make_shared<Matrix<T>>(fill<T>(X->rows, m));
    const auto out = std::make_shared<Matrix<T>>(X->rows, m);
    const auto get = [out](Index i, Index c) { return static_cast<double>(out->row(i)[c]); };
    return Prepared{[=] { product->apply(S->view(), out->view(), nullptr, execution); },
                    [=] { return product_error(*X, m, get); }};
  };
  cases.push_back(row);

  row.variant = "column-major";
  row.prepare = [X, m, threads] {
    const auto product = std::make_shared<ColumnMajorProduct<T>>(*X);
    const auto S = std::make_shared<Matrix<T>>(fill<T>(X->rows, m, true));
    const auto out = std::make_shared<Matrix<T>>(X->rows, m);
    const auto get = [out](Index i, Index c) { return static_cast<double>(out->data()[c * out->rows() + i]); };
    return Prepared{[=] { product->apply(S->data(), out->data(), m, threads); },
                    [=] { return product_error(*X, m, get); }};
  };
  cases.push_back(row);

  row.variant = "Eigen";
  row.prepare = [X, m, threads] {
    const auto product = std::make_shared<EigenProduct<T>>(*X);
    const auto S = std::make_shared<Matrix<T>>(fill<T>(X->rows, m));
    const auto out = std::make_shared<Matrix<T>>(X->rows, m);
    const auto get = [out](Index i, Index c) { return static_cast<double>(out->row(i)[c]); };
    return Prepared{[=] { product->apply(S->data(), out->data(), m, threads); },
                    [=] { return product_error(*X, m, get); }};
  };
  cases.push_back(row);
}

template <class T>
void add_dense(std::vector<Case>& cases, Index rows, Index features, Index m, int threads) {
  Case row;
  row.kernel = "X (X'S) dense";
  row.variant = "taxolearn";
  row.precision = precision_name<T>;
  row.columns = m;
  row.threads = threads;
  row.flops = 4.0 * static_cast<double>(rows * features) * static_cast<double>(m);
  row.bytes = static_cast<double>(rows * (features + 2 * m)) * sizeof(T);
  row.tolerance = sizeof(T) == 4 ? 1e-4 : 1e-11;
  row.peak = [threads](Roofline& roofline) { return roofline.flops<T>(threads); };
  row.prepare = [=] {
    const Execution execution{threads, nullptr};
    // X as a full sparse matrix too, for the check.
    const auto full = std::make_shared<Csr<double>>();
    full->rows = rows;
    full->cols = features;
    full->offsets.push_back(0);
    const auto X = std::make_shared<Matrix<T>>(fill<T>(rows, features));
    for (Index i = 0; i < rows; ++i) {
      for (Index j = 0; j < features; ++j) full->columns.push_back(static_cast<std::int32_t>(j));
      full->values.insert(full->values.end(), X->row(i), X->row(i) + features);
      full->offsets.push_back(static_cast<std::int32_t>(full->columns.size()));
    }
    const InputView input = static_cast<const Matrix<T>&>(*X).view();
    const std::shared_ptr<Operator<T>> product = make_linear<T>(input, 1.0, LinearAlgorithm::dense, execution);
    const auto S = std::make_shared<Matrix<T>>(fill<T>(rows, m));
    const auto out = std::make_shared<Matrix<T>>(rows, m);
    const auto get = [out](Index i, Index c) { return static_cast<double>(out->row(i)[c]); };
    return Prepared{[=, keep = X] { product->apply(S->view(), out->view(), nullptr, execution); },
                    [=] { return product_error(*full, m, get); }};
  };
  cases.push_back(row);
}

/// A tree of three levels over m classes: 50 below a node of the first level, at most four below one of the second.
std::shared_ptr<const Taxonomy> three_levels(Index m) {
  const Index width = 50, groups = 15;  // per node of the first level: ten classes in groups of 4, 4 and 2
  std::vector<Index> parents{-1}, of_class;
  for (Index first = 0; first < m; first += width) {
    const Index top = static_cast<Index>(parents.size());
    parents.push_back(0);
    for (Index group = 0; group < groups; ++group) {
      const Index begin = first + group / 3 * 10 + group % 3 * 4;
      const Index end = std::min({begin + (group % 3 == 2 ? 2 : 4), first + width, m});
      if (begin >= end) continue;
      const Index node = static_cast<Index>(parents.size());
      parents.push_back(top);
      of_class.insert(of_class.end(), static_cast<std::size_t>(end - begin), node);
    }
  }
  parents.insert(parents.end(), of_class.begin(), of_class.end());
  return std::make_shared<const Taxonomy>(parents);
}

/// What the tree adds to a product: S G for all rows.
template <class T>
void add_tree(std::vector<Case>& cases, Index rows, Index m, int threads) {
  const std::shared_ptr<const Taxonomy> taxonomy = three_levels(m);
  Case row;
  row.kernel = "S G tree";
  row.variant = "taxolearn";
  row.precision = precision_name<T>;
  row.columns = m;
  row.threads = threads;
  row.flops = static_cast<double>(rows) * (3.0 * static_cast<double>(m) + 4.0 * static_cast<double>(taxonomy->inner()));
  row.bytes = 2.0 * static_cast<double>(rows * m) * sizeof(T);
  row.tolerance = sizeof(T) == 4 ? 1e-5 : 1e-13;
  row.peak = [threads](Roofline& roofline) { return roofline.flops<T>(threads); };
  row.prepare = [=] {
    const Execution execution{threads, nullptr};
    TiedVariances variances;
    for (Index p = 0; p < taxonomy->nodes(); ++p) variances.variances.push_back(1.0 + entry(p, 0) / 2.0);
    const auto coupling = std::make_shared<const TreeCoupling>(taxonomy, variances);
    const auto S = std::make_shared<Matrix<T>>(fill<T>(rows, m));
    const auto out = std::make_shared<Matrix<T>>(rows, m);
    const Blocks blocks(rows, std::max<Index>(16, vector_block / m));
    const auto run = [=] {
      parallel_for(blocks.number(), execution, [&](Index block) {
        const Index first = blocks.first(block), count = blocks.length(block);
        std::copy(S->row(first), S->row(first) + count * m, out->row(first));
        coupling->apply(count, out->row(first));
      });
    };
    const auto error = [=] {
      double largest = 0.0, worst = 0.0;
      for (Index i = 0; i < rows; i += std::max<Index>(1, rows / 20)) {
        std::vector<double> sums(static_cast<std::size_t>(taxonomy->nodes()), 0.0);
        const auto climb = [&](Index c, const auto& body) {
          for (Index p = taxonomy->inner() + c; p > 0; p = taxonomy->parent(p)) body(static_cast<std::size_t>(p));
        };
        for (Index c = 0; c < m; ++c) climb(c, [&](std::size_t p) { sums[p] += entry(i, c); });
        for (Index c = 0; c < m; ++c) {
          double expected = 0.0;
          climb(c, [&](std::size_t p) { expected += variances.variances[p] * sums[p]; });
          largest = std::max(largest, std::abs(expected));
          worst = std::max(worst, std::abs(expected - static_cast<double>(out->row(i)[c])));
        }
      }
      return worst / largest;
    };
    return Prepared{run, error};
  };
  cases.push_back(row);
}

/// The passes of a fit over n x C predictors, on the same blocks of rows.
void add_softmax(std::vector<Case>& cases, Index rows, Index m, int threads) {
  struct Data {
    Data(Index rows, Index m) : labels(static_cast<std::size_t>(rows)), u(fill<double>(rows, m)), out(rows, m) {
      for (Index i = 0; i < rows; ++i) labels[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(i % m);
      for (Index k = 0; k < u.size(); ++k) u.data()[k] *= 5.0;
    }
    double plain_loss() const {
      double sum = 0.0;
      for (Index i = 0; i < u.rows(); ++i) {
        double exponentials = 0.0;
        for (Index c = 0; c < u.cols(); ++c) exponentials += std::exp(u.row(i)[c]);
        sum += std::log(exponentials) - u.row(i)[labels[static_cast<std::size_t>(i)]];
      }
      return sum;
    }
    std::vector<std::int32_t> labels;
    Matrix<double> u, out;
    double loss = 0.0;
  };
  const Blocks blocks(rows, std::max<Index>(1, vector_block / m));
  Case row;
  row.variant = "taxolearn";
  row.precision = "double";
  row.columns = m;
  row.threads = threads;
  row.exponentials = static_cast<double>(rows * m);
  row.bytes = 16.0 * static_cast<double>(rows * m);  // two arrays: u and the residual, or u and its direction
  row.tolerance = 1e-11;
  row.peak = [threads](Roofline& roofline) { return roofline.flops<double>(threads); };

  row.kernel = "softmax residual";
  row.prepare = [=] {
    const auto data = std::make_shared<Data>(rows, m);
    const auto softmax = std::make_shared<Softmax>(data->labels.data(), rows, m, nullptr);
    return Prepared{[=] {
                      data->loss = parallel_sum<double>(blocks, {threads, nullptr}, [&](Index first, Index count) {
                        std::copy(data->u.row(first), data->u.row(first) + count * m, data->out.row(first));
                        return softmax->residual(first, count, data->out.row(first));
                      });
                    },
                    [=] { return std::abs(data->loss / data->plain_loss() - 1.0); }};
  };
  cases.push_back(row);

  row.kernel = "softmax line";
  row.prepare = [=] {
    const auto data = std::make_shared<Data>(rows, m);
    const auto softmax = std::make_shared<Softmax>(data->labels.data(), rows, m, nullptr);
    return Prepared{[=] {
                      const LinePoint point =
                          parallel_sum<LinePoint>(blocks, {threads, nullptr}, [&](Index first, Index count) {
                            thread_local Buffer<double> moved;
                            moved.assign(data->u.row(first), data->u.row(first) + count * m);
                            return softmax->line(first, count, moved.data(), data->out.row(first));
                          });
                      data->loss = point.value;
                    },
                    [=] { return std::abs(data->loss / data->plain_loss() - 1.0); }};
  };
  cases.push_back(row);
}

}  // namespace

std::string Case::group() const {
  return kernel + "/" + precision + "/C:" + std::to_string(columns) + "/threads:" + std::to_string(threads);
}

std::string Case::name() const { return group() + "/" + variant; }

std::vector<Case> make_cases(std::shared_ptr<const Csr<double>> X, const Shape& shape) {
  std::vector<Case> cases;
  for (const int threads : shape.threads) {
    for (const Index m : shape.columns) {
      add_sparse<float>(cases, X, m, threads);
      add_sparse<double>(cases, X, m, threads);
      add_dense<float>(cases, X->rows, shape.dense_features, m, threads);
      add_dense<double>(cases, X->rows, shape.dense_features, m, threads);
      add_tree<float>(cases, X->rows, m, threads);
      add_tree<double>(cases, X->rows, m, threads);
      add_softmax(cases, X->rows, m, threads);
    }
  }
  return cases;
}

}  // namespace taxolearn::bench
