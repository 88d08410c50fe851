// The dynamic program of the subsequence kernel, for as many pairs of sequences at a time as a register has lanes.
//
// What is summed is w^(span in the left) w^(span in the right) over all pairs of equal subsequences of n letters, gaps
// included in the spans, w being the decay (Lodhi, Saunders, Shawe-Taylor, Cristianini, Watkins 2002). With m(a, b)
// for equal letters a and b,
//
//   P_0 = 1,   P_k(a, b) = sum over a' <= a, b' <= b of w^(a - a' + b - b') m(a', b') P_{k-1}(a' - 1, b' - 1),
//   K_n = w^(2n) sum_ab m(a, b) P_{n-1}(a - 1, b - 1).
//
// A strip of columns passes down the rows a. Its sums C_k(b) over a' <= a stay in registers, P_k runs along the strip,
//
//   P_k(b) = w P_k(b - 1) + C_k(b),   C_k(b) += m(a, b) P_{k-1}(b - 1),
//
// and the P_k of its last column wait in memory for the next strip. The decay of C_k from row to row is saved: row r
// counts w^-r at its start and w^r at its end, and every few rows the scale returns to one. So a cell costs one
// comparison, n - 1 fused multiply-adds and n masked additions, whatever the letters.
#pragma once

#include <algorithm>
#include <cmath>
#include <vector>

#include "lane_vectors.hpp"
#include "taxolearn/base/packets.hpp"

namespace taxolearn {

/// Powers of the decay for the rows that share a scale.
struct DecayPowers {
  static constexpr double largest = 65536.0;  // of up

  explicit DecayPowers(double decay_) : decay(decay_) {
    const double rows = decay < 1.0 ? std::floor(std::log(largest) / -std::log(decay)) : 256.0;
    period = std::clamp<Index>(static_cast<Index>(rows), 1, 256);
    for (Index r = 0; r <= period; ++r) down.push_back(std::pow(decay, static_cast<double>(r)));
    for (const double power : down) up.push_back(1.0 / power);
  }

  double decay;
  Index period;
  std::vector<double> down;  ///< decay^r for r = 0 .. period
  std::vector<double> up;    ///< decay^-r
};

/// Pairs of sequences, one per lane: the codes of the lanes' first letters, those of their second letters, and so on.
/// Shorter sequences end in codes that equal no code of the other side.
template <class T>
struct LanePairs {
  using Code = typename LaneVectors<T>::Code;

  const Code* left = nullptr;
  Index left_length = 0;
  const Code* right = nullptr;
  Index right_length = 0;     ///< a multiple of the columns of a strip
  const T* source = nullptr;  ///< what the empty subsequence counts, by lane
  T* edge = nullptr;          ///< scratch memory, left_length x SubsequenceProgram::edge_size
};

/// Subsequences of `levels` + 1 letters; with `derivative` also the derivative of the sum by the log of the decay.
template <class T, int levels, bool derivative>
struct SubsequenceProgram {
  using Vectors = LaneVectors<T>;
  using Values = typename Vectors::Values;
  using Codes = typename Vectors::Codes;

  static constexpr int parts = derivative ? 2 : 1;
  static constexpr int columns = std::clamp(register_count / 2 / std::max(levels * parts, 1), 1, 8);
  static constexpr int edge_size = parts * levels * Vectors::count;

  /// sums[0] = K_n / w^(n + 1) times the source, and sums[1] its derivative, lane by lane.
  static void run(const LanePairs<T>& pairs, const DecayPowers& powers, T (*sums)[Vectors::count]) {
    Values total[parts] = {};
    std::fill_n(pairs.edge, pairs.left_length * edge_size, T(0));
    for (Index column = 0; column < pairs.right_length; column += columns) strip(pairs, column, powers, total);
    for (int s = 0; s < parts; ++s) Vectors::store(total[s], sums[s]);
  }

 private:
  static void strip(const LanePairs<T>& pairs, Index column, const DecayPowers& powers, Values* total) {
    constexpr int lanes = Vectors::count;
    Codes letters[columns];
    Values C[parts][std::max(levels, 1)][columns] = {};
    Values sum[parts] = {};
    unrolled<columns>([&](auto c) { letters[c] = Vectors::load(pairs.right + (column + c) * lanes); });
    const Values decay = Vectors::all(static_cast<T>(powers.decay));
    const Values source = Vectors::load(pairs.source);
    for (Index first = 0; first < pairs.left_length; first += powers.period) {
      const Index rows = std::min(powers.period, pairs.left_length - first);
      if (first > 0) {
        const T fade = static_cast<T>(powers.down[static_cast<std::size_t>(powers.period)]);
        unrolled<levels>([&](auto k) {
          unrolled<columns>([&](auto c) {
            if constexpr (derivative) C[1][k][c] = fade * (C[1][k][c] + static_cast<T>(powers.period) * C[0][k][c]);
            C[0][k][c] *= fade;
          });
        });
      }
      for (Index r = 0; r < rows; ++r) {
        const Codes own = Vectors::load(pairs.left + (first + r) * lanes);
        T* const edge = pairs.edge + (first + r) * edge_size;
        Values P[parts][levels + 1], ends[parts] = {};
        P[0][0] = source * static_cast<T>(powers.up[static_cast<std::size_t>(r)]);
        if constexpr (derivative) P[1][0] = static_cast<T>(-r) * P[0][0];
        unrolled<parts>([&](auto s) {
          unrolled<levels>([&](auto k) { P[s][k + 1] = Vectors::load(edge + (s * levels + k) * lanes); });
        });
        unrolled<columns>([&](auto c) {
          const auto same = own == letters[c];
          unrolled<parts>([&](auto s) { ends[s] = same ? ends[s] + P[s][levels] : ends[s]; });
          unrolled<levels>([&](auto from_last) {
            constexpr int k = levels - 1 - from_last;
            if constexpr (derivative) {
              const Values before = C[1][k][c];
              C[1][k][c] = same ? before + P[1][k] : before;
              P[1][k + 1] = decay * (P[1][k + 1] + P[0][k + 1]) + before;
            }
            const Values before = C[0][k][c];
            C[0][k][c] = same ? before + P[0][k] : before;
            P[0][k + 1] = decay * P[0][k + 1] + before;
          });
        });
        unrolled<parts>([&](auto s) {
          unrolled<levels>([&](auto k) { Vectors::store(P[s][k + 1], edge + (s * levels + k) * lanes); });
        });
        const T end = static_cast<T>(powers.down[static_cast<std::size_t>(r)]);
        if constexpr (derivative) sum[1] += end * (ends[1] + static_cast<T>(r) * ends[0]);
        sum[0] += end * ends[0];
      }
    }
    for (int s = 0; s < parts; ++s) total[s] += sum[s];
  }
};

}  // namespace taxolearn
