#include "arrays.hpp"

namespace taxolearn::python {
namespace {

template <class V, class I>
InputView sparse_view(const py::array& data, const py::array& indices, const py::array& indptr, Index rows,
                      Index cols) {
  SparseView<V, I> view;
  view.values = static_cast<const V*>(data.data());
  view.columns = static_cast<const I*>(indices.data());
  view.offsets = static_cast<const I*>(indptr.data());
  view.rows = rows;
  view.cols = cols;
  require(indptr.size() == rows + 1, "X: indptr has ", indptr.size(), " elements, expected ", rows + 1);
  const auto end = static_cast<Index>(view.offsets[rows]);
  require(end >= 0 && end <= data.size() && end <= indices.size(), "X: indptr ends at ", end, " but there are ",
          data.size(), " values and ", indices.size(), " indices");
  require_valid("X", view);
  return view;
}

template <class T>
bool holds(const py::array& array) {
  return py::isinstance<py::array_t<T, py::array::c_style>>(array) && array.ndim() == 1;
}

}  // namespace

Input as_input(const py::object& X) {
  Input input;
  if (py::isinstance<py::array>(X)) {
    const auto array = py::cast<py::array>(X);
    input.owners = {array};
    if (py::isinstance<py::array_t<float>>(array)) {
      input.view = as_matrix<float>("X", array);
    } else {
      input.view = as_matrix<double>("X", array);
    }
    return input;
  }
  if (py::hasattr(X, "matrices")) {
    std::vector<InputView> views;
    for (const py::handle& each : X.attr("matrices")) {
      Input block = as_input(py::reinterpret_borrow<py::object>(each));
      views.push_back(block.view);
      input.owners.insert(input.owners.end(), block.owners.begin(), block.owners.end());
    }
    input.view = side_by_side(views);
    return input;
  }
  require(py::hasattr(X, "indptr") && py::hasattr(X, "indices") && py::hasattr(X, "data"),
          "X must be an array or a CSR matrix, or blocks of these");
  const auto data = py::cast<py::array>(X.attr("data"));
  const auto indices = py::cast<py::array>(X.attr("indices"));
  const auto indptr = py::cast<py::array>(X.attr("indptr"));
  const auto shape = py::cast<std::pair<Index, Index>>(X.attr("shape"));
  input.owners = {data, indices, indptr};
  const auto view = [&](auto value) -> bool {
    using V = decltype(value);
    if (!holds<V>(data)) return false;
    if (holds<std::int32_t>(indices) && holds<std::int32_t>(indptr)) {
      input.view = sparse_view<V, std::int32_t>(data, indices, indptr, shape.first, shape.second);
      return true;
    }
    if (holds<std::int64_t>(indices) && holds<std::int64_t>(indptr)) {
      input.view = sparse_view<V, std::int64_t>(data, indices, indptr, shape.first, shape.second);
      return true;
    }
    return false;
  };
  require(view(float{}) || view(double{}),
          "X: values must be float32 or float64 and both index arrays int32 or int64, got ",
          std::string(py::str(data.dtype())), ", ", std::string(py::str(indices.dtype())), " and ",
          std::string(py::str(indptr.dtype())));
  return input;
}

py::array_t<double> as_array(Matrix<double>&& matrix) {
  auto* const owner = new Matrix<double>(std::move(matrix));
  const py::capsule release(owner, [](void* pointer) { delete static_cast<Matrix<double>*>(pointer); });
  return py::array_t<double>({owner->rows(), owner->cols()}, owner->data(), release);
}

}  // namespace taxolearn::python
