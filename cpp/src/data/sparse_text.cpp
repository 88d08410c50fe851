#include "taxolearn/data/sparse_text.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>
#include <unordered_map>

#include "decimal.hpp"
#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

/// Bytes between two looks at the monitor.
constexpr std::ptrdiff_t stride = 1 << 16;

bool is_blank(char c) { return c == ' ' || c == '\t'; }

const char* skip_blanks(const char* at) {
  while (is_blank(*at)) ++at;
  return at;
}

/// The token that begins here, fit for a message: bytes outside of ASCII as \xNN, long ones cut.
std::string shown(const char* at, const char* line_end) {
  constexpr std::ptrdiff_t longest = 40;
  if (at == line_end) return "the end of the line";
  const char* end = at;
  while (end != line_end && (end == at || !is_blank(*end))) ++end;
  std::string text = "'";
  for (const char* p = at; p != std::min(end, at + longest); ++p) {
    const auto byte = static_cast<unsigned char>(*p);
    if (byte >= 0x20 && byte < 0x7f) {
      text += *p;
    } else {
      constexpr char digits[] = "0123456789abcdef";
      text += "\\x";
      text += digits[byte >> 4];
      text += digits[byte & 15];
    }
  }
  return text + (end - at > longest ? "...'" : "'");
}

}  // namespace

/// Reads whole lines. Each ends in '\n', which no loop over characters passes, so that none has to look for the end of
/// the block as well.
class SparseTextParser::Lines {
 public:
  Lines(const SparseTextSettings& settings, const std::vector<std::string>& vocabulary) : settings_(settings) {
    for (const std::string& name : vocabulary) {
      require(id_of_.count(name) == 0, "the vocabulary holds '", name, "' twice");
      new_id(name);
    }
    rows_.offsets.push_back(0);
    rows_.label_offsets.push_back(0);
  }

  void parse(const char* begin, const char* end, const Execution& execution) {
    at_ = asked_ = begin;
    while (at_ != end) {
      line_ = at_;
      ++line_number_;
      if (line_number_ == 1 && end - begin >= 3 && std::memcmp(begin, "\xef\xbb\xbf", 3) == 0) at_ += 3;
      at_ = skip_blanks(at_);
      if (!at_line_end(at_)) {
        if (settings_.form == SparseTextForm::vw) {
          parse_vw_labels();
          while (*at_ == '|') parse_namespace(execution);
        } else {
          parse_labels();
          parse_pairs(execution);
        }
        if (!at_line_end(at_)) expected(at_, "the end of the line");
        close_row();
      }
      if (*at_ == '#') at_ = static_cast<const char*>(std::memchr(at_, '\n', static_cast<std::size_t>(end - at_)));
      if (*at_ == '\r') ++at_;
      ++at_;
      poll(at_, execution);
    }
  }

  SparseTextRows take() { return std::move(rows_); }
  const std::deque<std::string>& names() const { return names_; }

 private:
  // ---- labels

  /// Numbers joined by commas; blanks may follow a comma.
  void parse_label_list() {
    rows_.labels.push_back(number("a label, which is a finite number"));
    while (*at_ == ',') {
      if (!settings_.several_labels) fail(at_, "several labels on a line are read with multilabel=True");
      at_ = skip_blanks(at_ + 1);
      rows_.labels.push_back(number("a label, which is a finite number"));
    }
  }

  /// Whether the line begins with its features: then it has no label.
  bool starts_with_pair() const {
    const char* p = at_;
    while (!is_blank(*p) && !at_line_end(p) && *p != ':') ++p;
    return *p == ':';
  }

  void parse_labels() {
    if (!(settings_.several_labels && starts_with_pair())) {
      parse_label_list();
      require_end_of_token(at_, "a blank after the label");
    }
    at_ = skip_blanks(at_);
    if (settings_.form == SparseTextForm::lshtc) {
      rows_.totals.push_back(std::numeric_limits<double>::quiet_NaN());
      if (at_[0] == '0' && at_[1] == ':') {
        at_ += 2;
        rows_.totals.back() = number("a finite number");
        require_end_of_token(at_, "a blank after the number");
      }
    } else if (std::strncmp(at_, "qid:", 4) == 0) {
      if (!settings_.query_ids) fail(at_, "query ids are not wanted; pass over them with qid=\"ignore\"");
      at_ += 4;
      if (!is_digit(*at_)) expected(at_, "the digits of a query id");
      while (is_digit(*at_)) ++at_;
      require_end_of_token(at_, "a blank after the query id");
    }
  }

  void parse_vw_labels() {
    if (!(settings_.several_labels && *at_ == '|')) {
      parse_label_list();
      if (*at_ == '|') fail(at_, "vw takes a label that touches '|' for a tag; put a blank between them");
      require_end_of_token(at_, "a blank after the label");
    }
    double weight = 1.0;
    bool weighted = false;
    for (at_ = skip_blanks(at_); *at_ != '|'; at_ = skip_blanks(at_)) {
      if (at_line_end(at_)) expected(at_, "'|' before the features");
      const char* const start = at_;
      const char* end = at_;
      double token = 0.0;
      while (!is_blank(*end) && *end != '|' && !at_line_end(end)) ++end;
      if (*start == '\'') {
        at_ = end;
      } else if (read_decimal(at_, token) && at_ == end) {
        if (*end == '|') fail(start, "vw takes a weight that touches '|' for a tag; put a blank between them");
        if (weighted) fail(start, "a weight came before; initial predictions are not supported");
        if (token < 0.0) fail(start, "a weight must not be negative");
        weight = token;
        weighted = true;
      } else if (*end == '|') {
        at_ = end;
      } else {
        expected(start, "a weight, a tag or '|'");
      }
    }
    rows_.weights.push_back(weight);
    rows_.weighted = rows_.weighted || weighted;
  }

  // ---- features

  void parse_pairs(const Execution& execution) {
    const char* at = at_;
    for (;;) {
      at = skip_blanks(at);
      if (at_line_end(at)) break;
      const char* const start = at;
      const std::int64_t id = identifier(at, "a feature id:value");
      if (*at != ':') expected(at, "':' and a value after the feature id");
      double value = 0.0;
      if (!read_decimal(++at, value)) expected(at, "a finite number");
      require_end_of_token(at, "a blank after the value");
      if (id == 0 && settings_.form == SparseTextForm::lshtc) {
        fail(start, "0 is no word: 0:N is expected first on the line or not at all");
      }
      add(id, value, start);
      poll(at, execution);
    }
    at_ = at;
  }

  void parse_namespace(const Execution& execution) {
    const char* const start = at_++;
    const char* const name = at_;
    while (!ends_name(*at_) && !at_line_end(at_)) ++at_;
    const std::string_view space(name, static_cast<std::size_t>(at_ - name));
    double scale = 1.0;
    if (*at_ == ':') {
      ++at_;
      scale = number("the finite scale of a namespace");
    }
    if (*at_ != '|') require_end_of_token(at_, "a blank after the namespace");
    if (!settings_.named_features) {
      if (!space_known_) space_ = space;
      space_known_ = true;
      if (space_ != space) {
        fail(start, "namespaces " + quoted(space_) + " and " + quoted(space) +
                        " with integer ids cannot be told apart; read them with features=\"names\"");
      }
    }
    for (at_ = skip_blanks(at_); *at_ != '|' && !at_line_end(at_); at_ = skip_blanks(at_)) {
      parse_vw_feature(space, scale);
      poll(at_, execution);
    }
  }

  void parse_vw_feature(std::string_view space, double scale) {
    const char* const start = at_;
    std::int64_t id = 0;
    if (settings_.named_features) {
      while (!ends_name(*at_) && !at_line_end(at_)) ++at_;
      if (at_ == start) expected(start, "the name of a feature");
      id = id_of(space, {start, static_cast<std::size_t>(at_ - start)});
    } else {
      id = identifier(at_, "a feature index or index:value (features with names are read with features=\"names\")");
    }
    double value = 1.0;
    if (*at_ == ':') {
      ++at_;
      value = number("a finite number");
    }
    if (*at_ != '|') require_end_of_token(at_, "a blank after the feature");
    value *= scale;
    if (!std::isfinite(value)) fail(start, "value times scale of the namespace is beyond the range of double");
    if (id >= 0) add(id, value, start);
  }

  static bool ends_name(char c) { return is_blank(c) || c == ':' || c == '|'; }

  std::int64_t id_of(std::string_view space, std::string_view name) {
    key_.assign(space);
    if (!space.empty()) key_ += '^';
    key_ += name;
    const auto found = id_of_.find(key_);
    if (found != id_of_.end()) return found->second;
    return settings_.fixed_vocabulary ? -1 : new_id(key_);
  }

  std::int64_t new_id(const std::string& name) {
    const auto id = static_cast<std::int64_t>(names_.size());
    names_.push_back(name);
    id_of_.emplace(names_.back(), id);
    return id;
  }

  // ---- rows

  void add(std::int64_t id, double value, const char* start) {
    if (!starts_.empty() && id <= rows_.ids.back()) rising_ = false;
    starts_.push_back(start - line_);
    rows_.ids.push_back(id);
    rows_.values.push_back(value);
  }

  void close_row() {
    if (!rising_) sort_row();
    if (!starts_.empty()) {
      const std::int64_t low = rows_.ids[rows_.ids.size() - starts_.size()];
      const std::int64_t high = rows_.ids.back();
      if (rows_.smallest.line == 0 || low < rows_.smallest.id) {
        rows_.smallest = {low, line_number_, starts_.front() + 1};
      }
      if (rows_.largest.line == 0 || high > rows_.largest.id) rows_.largest = {high, line_number_, starts_.back() + 1};
    }
    starts_.clear();
    rising_ = true;
    rows_.offsets.push_back(static_cast<std::int64_t>(rows_.ids.size()));
    rows_.label_offsets.push_back(static_cast<std::int64_t>(rows_.labels.size()));
  }

  void sort_row() {
    const std::size_t first = rows_.ids.size() - starts_.size();
    row_.resize(starts_.size());
    for (std::size_t k = 0; k < row_.size(); ++k) {
      row_[k] = {rows_.ids[first + k], starts_[k], rows_.values[first + k]};
    }
    std::sort(row_.begin(), row_.end(),
              [](const Entry& a, const Entry& b) { return a.id != b.id ? a.id < b.id : a.start < b.start; });
    for (std::size_t k = 0; k < row_.size(); ++k) {
      if (k > 0 && row_[k].id == row_[k - 1].id) {
        fail(line_ + row_[k].start, "feature " +
                                        (settings_.named_features ? quoted(names_[static_cast<std::size_t>(row_[k].id)])
                                                                  : std::to_string(row_[k].id)) +
                                        " occurs twice in the row, first at column " +
                                        std::to_string(row_[k - 1].start + 1));
      }
      rows_.ids[first + k] = row_[k].id;
      rows_.values[first + k] = row_[k].value;
      starts_[k] = row_[k].start;
    }
  }

  // ---- characters

  bool at_line_end(const char* at) const {
    return *at == '\n' || (*at == '\r' && at[1] == '\n') || (*at == '#' && settings_.form != SparseTextForm::vw);
  }

  double number(const char* what) {
    double value = 0.0;
    if (!read_decimal(at_, value)) expected(at_, what);
    return value;
  }

  /// Digits without a sign.
  std::int64_t identifier(const char*& at, const char* what) const {
    constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max() - 1;  // one more counts the columns
    if (!is_digit(*at)) expected(at, what);
    const char* const start = at;
    std::int64_t id = 0;
    for (; is_digit(*at); ++at) {
      const std::int64_t digit = *at - '0';
      if (id > (most - digit) / 10) fail(start, "feature id " + shown(start, line_end(start)) + " is too large");
      id = 10 * id + digit;
    }
    return id;
  }

  void require_end_of_token(const char* at, const char* what) const {
    if (!is_blank(*at) && !at_line_end(at)) expected(at, what);
  }

  void poll(const char* at, const Execution& execution) {
    if (at - asked_ < stride) return;
    asked_ = at;
    if (execution.monitor == nullptr) return;
    execution.monitor->poll();
    if (execution.monitor->stopped()) throw Interrupted();
  }

  const char* line_end(const char* at) const {
    while (*at != '\n' && !(*at == '\r' && at[1] == '\n')) ++at;
    return at;
  }

  static std::string quoted(std::string_view text) {
    const std::string line = std::string(text) + '\n';
    return text.empty() ? "''" : shown(line.data(), line.data() + text.size());
  }

  [[noreturn]] void fail(const char* where, const std::string& message) const {
    throw InvalidArgument("line " + std::to_string(line_number_) + ", column " + std::to_string(where - line_ + 1) +
                          ": " + message);
  }

  [[noreturn]] void expected(const char* where, const char* what) const {
    fail(where, std::string("expected ") + what + ", found " + shown(where, line_end(where)));
  }

  struct Entry {
    std::int64_t id;
    Index start;
    double value;
  };

  SparseTextSettings settings_;
  SparseTextRows rows_;
  const char* at_ = nullptr;
  const char* line_ = nullptr;   // where the line begins
  const char* asked_ = nullptr;  // where the monitor was asked last
  Index line_number_ = 0;
  bool rising_ = true;         // the ids of this line so far
  std::vector<Index> starts_;  // where in the line each of its entries begins
  std::vector<Entry> row_;
  std::string space_;  // the one namespace of integer ids
  bool space_known_ = false;
  std::string key_;
  std::deque<std::string> names_;  // never moves what it holds, so that the keys below may point into it
  std::unordered_map<std::string_view, std::int64_t> id_of_;
};

SparseTextParser::SparseTextParser(const SparseTextSettings& settings, const std::vector<std::string>& vocabulary)
    : lines_(std::make_unique<Lines>(settings, vocabulary)) {}

SparseTextParser::~SparseTextParser() = default;

void SparseTextParser::feed(std::string_view text, const Execution& execution) {
  const std::size_t last = text.rfind('\n');
  if (last == std::string_view::npos) {
    carry_ += text;
    return;
  }
  std::size_t first = 0;
  if (!carry_.empty()) {
    first = text.find('\n') + 1;
    carry_ += text.substr(0, first);
    lines_->parse(carry_.data(), carry_.data() + carry_.size(), execution);
  }
  lines_->parse(text.data() + first, text.data() + last + 1, execution);
  carry_.assign(text.substr(last + 1));
}

SparseTextRows SparseTextParser::finish(const Execution& execution) {
  if (!carry_.empty()) {
    carry_ += '\n';
    lines_->parse(carry_.data(), carry_.data() + carry_.size(), execution);
    carry_.clear();
  }
  return lines_->take();
}

const std::deque<std::string>& SparseTextParser::vocabulary() const { return lines_->names(); }

}  // namespace taxolearn
