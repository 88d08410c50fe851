#include "lockstep.hpp"

#include <algorithm>
#include <exception>
#include <thread>

#include "taxolearn/base/check.hpp"

namespace taxolearn {
namespace {

constexpr Index rows_per_block = 256;

}  // namespace

template <class T>
class Lockstep<T>::Proxy final : public Operator<T> {
 public:
  Proxy(Lockstep& owner, Index member, std::size_t matrix) : owner_(owner), member_(member), matrix_(matrix) {}

  Index rows() const override { return inner().rows(); }
  void apply(DenseView<const T> S, DenseView<T> out, const T* shift, const Execution&) override {
    owner_.request({member_, matrix_, S, out, shift});
  }
  void apply_cross(const InputView&, DenseView<const T>, DenseView<T>, const Execution&) override { refuse(); }
  void diag(double* out) const override { inner().diag(out); }
  Index parameters() const override { return inner().parameters(); }
  void bilinear_grad(DenseView<const T>, DenseView<const T>, double*, const Execution&) override { refuse(); }
  std::unique_ptr<Operator<T>> subset(const std::vector<Index>&, const Execution&) override {
    refuse();
    return nullptr;
  }
  std::string algorithm() const override { return inner().algorithm(); }

 private:
  static void refuse() { require(false, "products in lockstep are with all rows, and products only"); }
  Operator<T>& inner() const { return *owner_.operators_[matrix_]; }

  Lockstep& owner_;
  Index member_;
  std::size_t matrix_;
};

template <class T>
Lockstep<T>::Lockstep(std::vector<Operator<T>*> operators, Index members)
    : operators_(std::move(operators)),
      proxies_(static_cast<std::size_t>(members)),
      served_(static_cast<std::size_t>(members), 0) {
  for (Index member = 0; member < members; ++member) {
    for (std::size_t l = 0; l < operators_.size(); ++l)
      proxies_[static_cast<std::size_t>(member)].push_back(std::make_unique<Proxy>(*this, member, l));
  }
}

template <class T>
Lockstep<T>::~Lockstep() = default;

template <class T>
std::vector<Operator<T>*> Lockstep<T>::operators_of(Index member) {
  std::vector<Operator<T>*> out;
  for (const auto& each : proxies_[static_cast<std::size_t>(member)]) out.push_back(each.get());
  return out;
}

template <class T>
void Lockstep<T>::request(const Request& request) {
  std::unique_lock<std::mutex> lock(mutex_);
  char& served = served_[static_cast<std::size_t>(request.member)];
  served = 0;
  waiting_.push_back(request);
  changed_.notify_all();
  changed_.wait(lock, [&] { return served != 0 || stopped_; });
  if (served == 0) throw Interrupted();
}

template <class T>
void Lockstep<T>::serve(const std::vector<Request>& batch, const Execution& execution) {
  Operator<T>& op = *operators_[batch.front().matrix];
  if (batch.size() == 1) {
    op.apply(batch.front().S, batch.front().out, batch.front().shift, execution);
    return;
  }
  const Index n = op.rows();
  std::vector<Index> begin{0};
  std::vector<T> shift;
  for (const Request& each : batch) {
    begin.push_back(begin.back() + each.S.cols);
    for (Index c = 0; c < each.S.cols; ++c) shift.push_back(each.shift == nullptr ? T(0) : each.shift[c]);
  }
  const Index width = begin.back();
  columns_.resize(static_cast<std::size_t>(n * width));
  images_.resize(columns_.size());
  const Blocks blocks(n, rows_per_block);
  parallel_for(blocks.number(), execution, [&](Index block) {
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      for (std::size_t k = 0; k < batch.size(); ++k) {
        const T* const row = batch[k].S.row(i);
        std::copy(row, row + batch[k].S.cols, columns_.data() + i * width + begin[k]);
      }
    }
  });
  op.apply(DenseView<const T>(columns_.data(), n, width), DenseView<T>(images_.data(), n, width), shift.data(),
           execution);
  parallel_for(blocks.number(), execution, [&](Index block) {
    for (Index i = blocks.first(block); i < blocks.first(block) + blocks.length(block); ++i) {
      for (std::size_t k = 0; k < batch.size(); ++k) {
        const T* const row = images_.data() + i * width + begin[k];
        std::copy(row, row + batch[k].out.cols, batch[k].out.row(i));
      }
    }
  });
}

template <class T>
void Lockstep<T>::run(const std::function<void(Index)>& body, const Execution& execution) {
  const auto members = static_cast<Index>(proxies_.size());
  std::vector<std::exception_ptr> errors(static_cast<std::size_t>(members));
  std::exception_ptr failure;
  std::vector<std::thread> threads;
  active_ = members;
  stopped_ = false;
  for (Index member = 0; member < members; ++member) {
    threads.emplace_back([&, member] {
      try {
        body(member);
      } catch (...) {
        errors[static_cast<std::size_t>(member)] = std::current_exception();
      }
      const std::lock_guard<std::mutex> lock(mutex_);
      --active_;
      changed_.notify_all();
    });
  }
  Progress progress;
  while (true) {
    std::vector<Request> batch;
    {
      std::unique_lock<std::mutex> lock(mutex_);
      changed_.wait(lock, [&] { return static_cast<Index>(waiting_.size()) == active_ || stopped_; });
      if (active_ == 0) break;
      if (stopped_) {
        changed_.wait(lock, [&] { return active_ == 0; });
        break;
      }
      // In the order of members, so that sums never depend on who came first.
      std::sort(waiting_.begin(), waiting_.end(),
                [](const Request& a, const Request& b) { return a.member < b.member; });
      const std::size_t matrix = waiting_.front().matrix;
      const auto later = std::stable_partition(waiting_.begin(), waiting_.end(),
                                               [&](const Request& each) { return each.matrix == matrix; });
      batch.assign(waiting_.begin(), later);
      waiting_.erase(waiting_.begin(), later);
    }
    try {
      serve(batch, execution);
      progress.products += static_cast<int>(batch.size());
      if (execution.monitor != nullptr) execution.monitor->progress(progress);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard<std::mutex> lock(mutex_);
    if (failure != nullptr) stopped_ = true;
    for (const Request& each : batch) served_[static_cast<std::size_t>(each.member)] = failure == nullptr ? 1 : 0;
    changed_.notify_all();
  }
  for (std::thread& thread : threads) thread.join();
  waiting_.clear();
  if (failure != nullptr) std::rethrow_exception(failure);
  for (const std::exception_ptr& error : errors) {
    if (error != nullptr) std::rethrow_exception(error);
  }
}

template class Lockstep<float>;
template class Lockstep<double>;

}  // namespace taxolearn
