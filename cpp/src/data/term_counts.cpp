#include "taxolearn/data/term_counts.hpp"

#include <algorithm>
#include <cstring>
#include <limits>

#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_of_block = 256;

std::uint64_t hash(std::string_view text) {
  constexpr std::uint64_t factor = 0x9e3779b97f4a7c15u;
  const char* from = text.data();
  std::size_t left = text.size();
  std::uint64_t sum = factor * (left + 1);
  const auto mix = [&](std::size_t bytes) {
    std::uint64_t word = 0;
    std::memcpy(&word, from, bytes);
    sum = (sum ^ word) * factor;
    sum ^= sum >> 29;
  };
  for (; left >= 8; left -= 8, from += 8) mix(8);
  if (left > 0) mix(left);
  sum *= factor;
  return sum ^ (sum >> 32);
}

bool begins_character(char byte) { return (static_cast<unsigned char>(byte) & 0xc0u) != 0x80u; }

/// Bytes of the white space at the front of a text, 0 if there is none: the characters that str.split knows.
std::size_t space_at(const char* from, const char* end) {
  const auto byte = [&](int k) { return from + k < end ? static_cast<unsigned char>(from[k]) : 0u; };
  const unsigned first = byte(0);
  if ((first >= 0x09 && first <= 0x0d) || (first >= 0x1c && first <= 0x20)) return 1;
  if (first == 0xc2) return byte(1) == 0x85 || byte(1) == 0xa0 ? 2 : 0;
  if (first == 0xe1) return byte(1) == 0x9a && byte(2) == 0x80 ? 3 : 0;  // U+1680
  if (first == 0xe3) return byte(1) == 0x80 && byte(2) == 0x80 ? 3 : 0;  // U+3000
  if (first != 0xe2) return 0;
  const unsigned last = byte(2);
  const bool general =
      byte(1) == 0x80 && ((last >= 0x80 && last <= 0x8a) || last == 0xa8 || last == 0xa9 || last == 0xaf);
  return general || (byte(1) == 0x81 && last == 0x9f) ? 3 : 0;  // U+2000 to 200A, 2028, 2029, 202F; 205F
}

/// What one thread needs to count.
class Counter {
 public:
  Counter(const Vocabulary& vocabulary, TermUnit unit, int shortest, int longest)
      : vocabulary_(vocabulary), unit_(unit), shortest_(shortest), longest_(longest) {}

  /// The known terms of a text, in rising order, each as often as it occurs.
  const std::vector<std::int32_t>& found(std::string_view text) {
    found_.clear();
    starts_.clear();
    const char* from = text.data();
    const char* const end = from + text.size();
    while (from < end) {
      const std::size_t space = space_at(from, end);
      if (space > 0) {
        from += space;
        continue;
      }
      const char* last = from;
      while (last < end && space_at(last, end) == 0) ++last;
      if (unit_ == TermUnit::words) {
        starts_.push_back({from, last});
      } else {
        characters({from, static_cast<std::size_t>(last - from)});
      }
      from = last;
    }
    if (unit_ == TermUnit::words) words();
    std::sort(found_.begin(), found_.end());
    return found_;
  }

 private:
  struct Word {
    const char* begin;
    const char* end;
  };

  void add(const char* begin, const char* end) {
    const std::int32_t term = vocabulary_.find({begin, static_cast<std::size_t>(end - begin)});
    if (term >= 0) found_.push_back(term);
  }

  void words() {
    const auto count = static_cast<std::ptrdiff_t>(starts_.size());
    for (std::ptrdiff_t k = 0; k < count; ++k) {
      const std::ptrdiff_t most = std::min<std::ptrdiff_t>(longest_, count - k);
      for (std::ptrdiff_t length = shortest_; length <= most; ++length)
        add(starts_[k].begin, starts_[k + length - 1].end);
    }
  }

  void characters(std::string_view word) {
    padded_.assign(1, ' ').append(word).push_back(' ');
    places_.clear();
    for (std::size_t k = 0; k < padded_.size(); ++k) {
      if (begins_character(padded_[k])) places_.push_back(k);
    }
    const auto count = static_cast<int>(places_.size());
    places_.push_back(padded_.size());
    const char* const text = padded_.data();
    for (int length = shortest_; length <= longest_; ++length) {
      if (length >= count) {
        add(text, text + padded_.size());
        return;
      }
      for (int k = 0; k + length <= count; ++k) add(text + places_[k], text + places_[k + length]);
    }
  }

  const Vocabulary& vocabulary_;
  TermUnit unit_;
  int shortest_, longest_;
  std::vector<std::int32_t> found_;
  std::vector<Word> starts_;
  std::string padded_;
  std::vector<std::size_t> places_;
};

}  // namespace

Vocabulary::Vocabulary(const std::vector<std::string_view>& terms) {
  require(terms.size() < static_cast<std::size_t>(std::numeric_limits<std::int32_t>::max()), "there are ", terms.size(),
          " terms, expected fewer than 2^31");
  std::size_t total = 0, slots = 2;
  for (const std::string_view term : terms) total += term.size();
  while (slots < 2 * terms.size()) slots *= 2;
  bytes_.reserve(total);
  offsets_.reserve(terms.size() + 1);
  slots_.resize(slots);
  offsets_.push_back(0);
  for (std::size_t k = 0; k < terms.size(); ++k) {
    bytes_.append(terms[k]);
    offsets_.push_back(bytes_.size());
    const std::uint64_t h = hash(terms[k]);
    std::size_t place = h & (slots - 1);
    for (; slots_[place].term >= 0; place = (place + 1) & (slots - 1)) {
      const auto other = static_cast<std::size_t>(slots_[place].term);
      require(terms[other] != terms[k], "the terms ", other, " and ", k, " are the same");
    }
    slots_[place] = {static_cast<std::uint32_t>(h >> 32), static_cast<std::int32_t>(k)};
  }
}

std::int32_t Vocabulary::find(std::string_view term) const {
  const std::uint64_t h = hash(term);
  const auto tag = static_cast<std::uint32_t>(h >> 32);
  const std::size_t mask = slots_.size() - 1;
  for (std::size_t place = h & mask; slots_[place].term >= 0; place = (place + 1) & mask) {
    const Slot slot = slots_[place];
    if (slot.tag != tag) continue;
    const std::size_t begin = offsets_[slot.term], size = offsets_[slot.term + 1] - begin;
    if (size == term.size() && std::memcmp(bytes_.data() + begin, term.data(), size) == 0) return slot.term;
  }
  return -1;
}

TermCounts count_terms(const Vocabulary& vocabulary, const std::vector<std::string_view>& texts, TermUnit unit,
                       int shortest, int longest, const Execution& execution) {
  require(shortest >= 1 && longest >= shortest, "lengths must be at least 1 and in order, got ", shortest, " and ",
          longest);
  const Blocks blocks(static_cast<Index>(texts.size()), rows_of_block);
  struct Part {
    std::vector<std::int32_t> terms;
    std::vector<float> counts;
    std::vector<std::int64_t> ends;
  };
  std::vector<Part> parts(static_cast<std::size_t>(blocks.number()));
  parallel_for(blocks.number(), execution, [&](Index block) {
    Counter counter(vocabulary, unit, shortest, longest);
    Part& part = parts[static_cast<std::size_t>(block)];
    for (Index k = 0; k < blocks.length(block); ++k) {
      const std::vector<std::int32_t>& found = counter.found(texts[static_cast<std::size_t>(blocks.first(block) + k)]);
      for (std::size_t first = 0, last = 0; first < found.size(); first = last) {
        while (last < found.size() && found[last] == found[first]) ++last;
        part.terms.push_back(found[first]);
        part.counts.push_back(static_cast<float>(last - first));
      }
      part.ends.push_back(static_cast<std::int64_t>(part.terms.size()));
    }
  });
  std::size_t total = 0;
  for (const Part& part : parts) total += part.terms.size();
  TermCounts out;
  out.terms.reserve(total);
  out.counts.reserve(total);
  out.offsets.reserve(texts.size() + 1);
  out.offsets.push_back(0);
  for (const Part& part : parts) {
    const auto begin = static_cast<std::int64_t>(out.terms.size());
    for (const std::int64_t end : part.ends) out.offsets.push_back(begin + end);
    out.terms.insert(out.terms.end(), part.terms.begin(), part.terms.end());
    out.counts.insert(out.counts.end(), part.counts.begin(), part.counts.end());
  }
  return out;
}

}  // namespace taxolearn
