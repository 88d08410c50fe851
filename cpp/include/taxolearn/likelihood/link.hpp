// From predictors to probabilities: what prediction knows of a likelihood, without any labels.
#pragma once

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

/// What predictors u of a row say about its outputs.
enum class Link {
  softmax,   ///< one output is right: probabilities exp(u_c) / sum_k exp(u_k)
  logistic,  ///< each output may be right, whatever the others are: probabilities 1 / (1 + exp(-u_c))
  none,      ///< no probabilities, predictors only
  one_of,    ///< one output is right, by predictors of independent ones: logistic probabilities divided by their sum
};

/// What is asked for at a row.
enum class Output { predictor, probability, log_probability };

/// Whether the link has such an output.
inline bool has_output(Link link, Output output) { return link != Link::none || output == Output::predictor; }

/// Replaces predictors u by the scores s of a softmax, which are predictors themselves, or log 1 / (1 + exp(-u)).
void to_scores(Link link, Index size, double* u);

/// Replaces predictors u (count x outputs) by the output asked for, which the link must have. The temperature T divides
/// predictors, under `one_of` the logarithms of logistic probabilities: the larger it is, the less sure the answer.
void apply_link(Link link, Output output, Index count, Index outputs, double* u, double temperature = 1.0);

}  // namespace taxolearn
