#include "background_softmax.hpp"
#include "likelihood_contract.hpp"
#include "taxolearn/likelihood/independent_logistic.hpp"
#include "taxolearn/likelihood/quadratic_model.hpp"
#include "taxolearn/likelihood/softmax.hpp"

using namespace taxolearn;
using namespace taxolearn::tests;

namespace {

/// Targets of all kinds and weights for some rows and outputs.
struct Data {
  Index rows, outputs;
  std::vector<std::int32_t> labels, with_background;
  Padded<double> distributions, soft;
  std::vector<Index> offsets{0};
  std::vector<std::int32_t> sets;
  std::vector<double> weights, ones;

  Data(Index rows_, Index outputs_)
      : rows(rows_),
        outputs(outputs_),
        labels(Random(1).labels(rows, outputs)),
        with_background(Random(2).labels(rows, outputs + 1)),
        distributions(Random(3).targets(rows, outputs)),
        soft(Random(4).matrix(rows, outputs).cwiseAbs()),
        weights(Random(5).weights(rows)),
        ones(weights.size(), 1.0) {
    Random random(6);
    for (std::int32_t& label : with_background) --label;
    for (Index i = 0; i < rows; ++i) {
      for (Index c = 0; c < outputs; ++c) {
        if (i % 3 != 1 && random.below(3) == 0) sets.push_back(static_cast<std::int32_t>(c));
      }
      offsets.push_back(static_cast<Index>(sets.size()));
    }
    soft.view().row(0)[0] = 0.0;
    soft.view().row(rows - 1)[outputs - 1] = 1.0;
  }

  LabelSets label_sets() const { return {offsets.data(), sets.data(), rows}; }

  std::vector<std::unique_ptr<Likelihood>> likelihoods() const {
    std::vector<std::unique_ptr<Likelihood>> out;
    for (const double* w : {static_cast<const double*>(nullptr), weights.data()}) {
      out.push_back(std::make_unique<Softmax>(labels.data(), rows, outputs, w));
      out.push_back(std::make_unique<Softmax>(distributions.view(), w));
      out.push_back(std::make_unique<IndependentLogistic>(labels.data(), rows, outputs, w));
      out.push_back(std::make_unique<IndependentLogistic>(label_sets(), outputs, w));
      out.push_back(std::make_unique<IndependentLogistic>(soft.view(), w));
      out.push_back(std::make_unique<BackgroundSoftmax>(with_background, outputs, w == nullptr ? ones : weights));
    }
    return out;
  }
};

}  // namespace

TEST_CASE("every likelihood keeps the contract") {
  const Data data(7, 5);
  const auto likelihoods = data.likelihoods();
  for (std::size_t k = 0; k < likelihoods.size(); ++k) {
    CAPTURE(k);
    CHECK(likelihoods[k]->rows() == 7);
    CHECK(likelihoods[k]->outputs() == 5);
    const LikelihoodContract contract(*likelihoods[k]);
    contract.check();
    contract.check_subset();
  }
}

TEST_CASE("every likelihood keeps the contract for any number of outputs") {
  for (const Index outputs : {1, 2, 7, 8, 9, 15, 16, 17, 20, 31, 63, 64, 65, 513}) {
    CAPTURE(outputs);
    const Data data(3, outputs);
    for (const auto& likelihood : data.likelihoods()) LikelihoodContract(*likelihood).check();
  }
}

TEST_CASE("the quadratic model of every likelihood keeps the contract") {
  const Data data(6, 4);
  const Matrix<double> c = as_matrix(Random(7).matrix(6, 4));
  for (const auto& likelihood : data.likelihoods()) {
    Matrix<double> curvature = as_matrix(Random(8).matrix(6, 4));
    likelihood->curvature(0, 6, curvature.data());
    const QuadraticLikelihood quadratic(*likelihood, curvature, c, 7.0);
    LikelihoodContract(quadratic).check();
    CHECK(quadratic.hessian_structure() == likelihood->hessian_structure());
    CHECK(quadratic.link() == Link::none);
    CHECK(contains(rejection([&] { quadratic.subset({0}, {1.0}); }), "no subsets"));
    Matrix<double> zero(6, 4);
    CHECK(quadratic.residual(0, 6, zero.data()) == doctest::Approx(7.0));
    for (Index k = 0; k < c.size(); ++k) CHECK(zero.data()[k] == -c.data()[k]);
  }
}

TEST_CASE("logistic losses are those of each output and target by itself") {
  const Data data(7, 5);
  const MatrixXd u = 3.0 * Random(9).matrix(7, 5);
  MatrixXd sets = MatrixXd::Zero(7, 5);
  for (Index i = 0; i < 7; ++i) {
    for (Index k = data.offsets[static_cast<std::size_t>(i)]; k < data.offsets[static_cast<std::size_t>(i + 1)]; ++k)
      sets(i, data.sets[static_cast<std::size_t>(k)]) = 1.0;
  }
  const IndependentLogistic from_labels(data.labels.data(), 7, 5, data.weights.data());
  const IndependentLogistic from_sets(data.label_sets(), 5, data.weights.data());
  const IndependentLogistic from_numbers(data.soft.view(), data.weights.data());
  const auto check = [&](const Likelihood& likelihood, const MatrixXd& targets) {
    double loss = 0.0;
    for (Index i = 0; i < 7; ++i) {
      for (Index c = 0; c < 5; ++c)
        loss += data.weights[static_cast<std::size_t>(i)] * (targets(i, c) * std::log1p(std::exp(-u(i, c))) +
                                                             (1.0 - targets(i, c)) * std::log1p(std::exp(u(i, c))));
    }
    Matrix<double> residual = as_matrix(u);
    CHECK(likelihood.residual(0, 7, residual.data()) == doctest::Approx(loss).epsilon(1e-13));
    Matrix<double> p = as_matrix(u);
    apply_link(likelihood.link(), Output::probability, 7, 5, p.data());
    for (Index i = 0; i < 7; ++i) {
      for (Index c = 0; c < 5; ++c)
        CHECK(std::abs(residual.row(i)[c] - data.weights[static_cast<std::size_t>(i)] * (p.row(i)[c] - targets(i, c))) <
              1e-14);
    }
  };
  check(from_labels, one_hot(data.labels, 5));
  check(from_sets, sets);
  check(from_numbers, dense(data.soft.view()));
}

TEST_CASE("small logistic residuals and losses keep their digits") {
  const std::vector<std::int32_t> labels{0};
  const IndependentLogistic likelihood(labels.data(), 1, 2, nullptr);
  for (const double size : {30.0, 60.0}) {
    std::vector<double> u{size, -size};
    const std::vector<double> at = u;
    likelihood.residual(0, 1, u.data());
    CHECK(u[0] == doctest::Approx(-std::exp(-size)).epsilon(1e-12));
    CHECK(u[1] == doctest::Approx(std::exp(-size)).epsilon(1e-12));
    std::vector<float> single(2), du{1.0F, 2.0F};
    likelihood.single_residual(0, 1, at.data(), single.data());
    CHECK(single[0] == doctest::Approx(-std::exp(-size)).epsilon(1e-5));
    const LinePoint point = likelihood.single_line(0, 1, at.data(), 0.0, du.data());
    CHECK(point.slope == doctest::Approx(std::exp(-size)).epsilon(1e-5));
    CHECK(point.curvature == doctest::Approx(5.0 * std::exp(-size)).epsilon(1e-5));
  }
}

TEST_CASE("links give probabilities and their logarithms") {
  MatrixXd u = 3.0 * Random(10).matrix(6, 5);
  u.row(0) << 1e3, -1e3, 0.0, 40.0, -40.0;
  const auto run = [&](Link link, Output output) {
    Matrix<double> out = as_matrix(u);
    apply_link(link, output, 6, 5, out.data());
    return dense(out.view());
  };
  CHECK(relative_error(run(Link::softmax, Output::probability), softmax(u)) < 1e-14);
  CHECK(relative_error(run(Link::softmax, Output::log_probability), log_softmax(u)) < 1e-14);
  const MatrixXd p = run(Link::logistic, Output::probability), log_p = run(Link::logistic, Output::log_probability);
  for (Index i = 0; i < 6; ++i) {
    for (Index c = 0; c < 5; ++c) {
      const double v = u(i, c);
      CHECK(p(i, c) == doctest::Approx(1.0 / (1.0 + std::exp(-v))).epsilon(1e-14));
      CHECK(log_p(i, c) == doctest::Approx(v < 0.0 ? v - std::log1p(std::exp(v)) : -std::log1p(std::exp(-v))));
    }
  }
  CHECK(log_p(0, 1) == -1e3);
  CHECK(log_p(0, 3) == doctest::Approx(-std::exp(-40.0)).epsilon(1e-12));
  for (const Link link : {Link::softmax, Link::logistic, Link::none}) CHECK(identical(run(link, Output::predictor), u));
  CHECK(has_output(Link::none, Output::predictor));
  CHECK(!has_output(Link::none, Output::probability));
  CHECK(has_output(Link::logistic, Output::log_probability));
}

TEST_CASE("targets and weights are checked") {
  const double infinity = std::numeric_limits<double>::infinity();
  const std::vector<std::int32_t> labels{0, 2, 1};
  for (const double bad : {-0.5, infinity, std::nan("")}) {
    const std::vector<double> weights{1.0, bad, 1.0};
    CHECK(contains(rejection([&] { Softmax(labels.data(), 3, 3, weights.data()); }), "sample_weight[1] is "));
    CHECK(
        contains(rejection([&] { IndependentLogistic(labels.data(), 3, 3, weights.data()); }), "sample_weight[1] is "));
    CHECK(contains(rejection([&] { Softmax(labels.data(), 3, 3, nullptr).subset({0, 1}, {1.0, bad}); }),
                   "sample_weight[1] is "));
  }
  CHECK(rejection([&] { IndependentLogistic(labels.data(), 3, 2, nullptr); }) ==
        "label 2 of row 1 is out of range, expected 0 .. 1");
  const auto sets = [](const std::vector<Index>& offsets, const std::vector<std::int32_t>& members) {
    const LabelSets view{offsets.data(), members.empty() ? nullptr : members.data(),
                         static_cast<Index>(offsets.size()) - 1};
    return rejection([&] { IndependentLogistic(view, 3, nullptr); });
  };
  CHECK(sets({0, 2, 2, 3}, {0, 2, 1}).empty());
  CHECK(sets({0, 0}, {}).empty());
  CHECK(contains(sets({1, 2}, {0, 1}), "must start at 0"));
  CHECK(contains(sets({0, 2, 1}, {0, 1}), "fall from 2 to 1 at row 1"));
  CHECK(contains(sets({0, 1, 2}, {0, 3}), "label 3 of row 1 is out of range"));
  CHECK(contains(sets({0, 2}, {1, 1}), "label 1 of row 0 follows label 1"));
  for (const double bad : {-0.1, 1.1, std::nan("")}) {
    const std::vector<double> targets{0.0, bad};
    CHECK(contains(rejection([&] { IndependentLogistic(DenseView<const double>(targets.data(), 1, 2), nullptr); }),
                   "targets[0, 1] is "));
  }
}
