// Fits a linear classifier to three clouds of points and predicts the classes of points it has not seen.
#include <algorithm>
#include <cstdio>
#include <random>
#include <taxolearn/fit/fit.hpp>
#include <taxolearn/fit/predict.hpp>
#include <taxolearn/likelihood/softmax.hpp>

namespace tl = taxolearn;

int main() {
  constexpr tl::Index rows = 600, seen = 400, features = 2, classes = 3;
  const double centers[classes][features] = {{0.0, 2.0}, {2.0, -1.0}, {-2.0, -1.0}};
  tl::Matrix<double> X(rows, features);
  std::vector<std::int32_t> labels(rows);
  std::mt19937 random(1);
  std::normal_distribution<double> noise(0.0, 0.7);
  for (tl::Index i = 0; i < rows; ++i) {
    const tl::Index c = i % classes;
    labels[static_cast<std::size_t>(i)] = static_cast<std::int32_t>(c);
    for (tl::Index d = 0; d < features; ++d) X.row(i)[d] = centers[c][d] + noise(random);
  }

  const tl::Execution execution{tl::available_threads(), nullptr};
  const tl::Softmax likelihood(labels.data(), seen, classes, nullptr);
  tl::Problem problem;
  problem.X = tl::DenseView<const double>(X.data(), seen, features);
  problem.likelihood = &likelihood;
  const tl::FitResult result = tl::fit(problem, tl::FitSettings(), tl::Start(), execution);
  std::printf("%d iterations, relative gap %.1e\n", result.iterations, result.relative_gap);

  tl::Matrix<double> p(rows - seen, classes);
  tl::predict(tl::DenseView<const double>(X.row(seen), p.rows(), features), result.weights.view(),
              result.intercepts.data(), likelihood.link(), tl::Output::probability, p.view(), execution);
  tl::Index right = 0;
  for (tl::Index i = 0; i < p.rows(); ++i) {
    const auto best = std::max_element(p.row(i), p.row(i) + classes) - p.row(i);
    right += best == labels[static_cast<std::size_t>(seen + i)];
  }
  const double accuracy = static_cast<double>(right) / static_cast<double>(p.rows());
  std::printf("%.1f %% of %td new points right\n", 100.0 * accuracy, p.rows());
  return result.status == tl::Status::converged && accuracy > 0.95 ? 0 : 1;
}
