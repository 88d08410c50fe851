// From predictors to probabilities: what prediction knows of a likelihood, without any labels.
#pragma once

#include "taxolearn/base/matrix.hpp"

namespace taxolearn {

/// What predictors u of a row say about its outputs.
enum class Link {
  softmax,   ///< one output is right: probabilities exp(u_c) / sum_k exp(u_k)
  logistic,  ///< each output may be right, whatever the others are: probabilities 1 / (1 + exp(-u_c))
  none,      ///< no probabilities, predictors only
};

/// What is asked for at a row.
enum class Output { predictor, probability, log_probability };

/// Whether the link has such an output.
inline bool has_output(Link link, Output output) { return link != Link::none || output == Output::predictor; }

/// Replaces predictors u (count x outputs) by the output asked for, which the link must have.
void apply_link(Link link, Output output, Index count, Index outputs, double* u);

}  // namespace taxolearn
