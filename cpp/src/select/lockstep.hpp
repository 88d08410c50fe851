// Several computations side by side whose products with the same matrices are done together.
//
// Each runs in a thread of its own and asks for products as it likes. When all of them wait for one, the thread that
// called run() multiplies all their columns at once, so that a stored matrix is read, or an entry computed, once for
// all. What a computation does between products is serial; nothing depends on the others but the time it takes.
#pragma once

#include <condition_variable>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "taxolearn/operators/operator.hpp"

namespace taxolearn {

template <class T>
class Lockstep {
 public:
  /// Borrows the operators.
  Lockstep(std::vector<Operator<T>*> operators, Index members);
  ~Lockstep();

  /// Operators like those given; only inside the body of this member, and only its products, can they be used.
  std::vector<Operator<T>*> operators_of(Index member);

  /// Calls body(member) for all members. Throws what a product or a body throws; Interrupted ends all of them.
  void run(const std::function<void(Index)>& body, const Execution& execution);

 private:
  class Proxy;
  struct Request {
    Index member;
    std::size_t matrix;
    DenseView<const T> S;
    DenseView<T> out;
    const T* shift;
  };

  void request(const Request& request);
  void serve(const std::vector<Request>& batch, const Execution& execution);

  std::vector<Operator<T>*> operators_;
  std::vector<std::vector<std::unique_ptr<Proxy>>> proxies_;  ///< per member
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Request> waiting_;
  std::vector<char> served_;  ///< per member
  Index active_ = 0;
  bool stopped_ = false;
  Buffer<T> columns_, images_;
};

}  // namespace taxolearn
