#include <pybind11/stl.h>

#include "arrays.hpp"
#include "choice.hpp"
#include "execution.hpp"
#include "taxolearn/data/sparse_text.hpp"
#include "taxolearn/data/term_counts.hpp"

namespace taxolearn::python {
namespace {

const std::map<std::string, SparseTextForm> forms{
    {"svmlight", SparseTextForm::svmlight}, {"lshtc", SparseTextForm::lshtc}, {"vw", SparseTextForm::vw}};

const std::map<std::string, TermUnit> units{{"words", TermUnit::words}, {"characters", TermUnit::characters}};

/// The bytes that the list keeps alive.
std::vector<std::string_view> as_views(const std::vector<py::bytes>& texts) {
  return std::vector<std::string_view>(texts.begin(), texts.end());
}

/// (id, line, column), or None.
py::object as_place(const IdPlace& place) {
  if (place.line == 0) return py::none();
  return py::make_tuple(place.id, place.line, place.column);
}

}  // namespace

void bind_data(py::module_& module) {
  py::class_<Vocabulary>(module, "Vocabulary", py::module_local(), "Terms to be counted in texts.")
      .def(py::init([](const std::vector<py::bytes>& terms) { return std::make_unique<Vocabulary>(as_views(terms)); }),
           py::arg("terms"))
      .def("__len__", &Vocabulary::size)
      .def(
          "count",
          [](const Vocabulary& self, const std::vector<py::bytes>& texts, const std::string& unit, int shortest,
             int longest, int n_threads) {
            const std::vector<std::string_view> views = as_views(texts);
            const TermUnit chosen = choose("unit", unit, units);
            TermCounts found;
            run(n_threads, py::none(), [&](const Execution& execution) {
              found = count_terms(self, views, chosen, shortest, longest, execution);
            });
            return py::make_tuple(as_array(std::move(found.counts)), as_array(std::move(found.terms)),
                                  as_array(std::move(found.offsets)));
          },
          py::arg("texts"), py::arg("unit"), py::arg("shortest"), py::arg("longest"), py::arg("n_threads"));
  py::class_<SparseTextParser>(module, "SparseTextParser", py::module_local(),
                               "Rows of an svmlight, LSHTC or vw file, fed block by block.")
      .def(py::init([](const std::string& form, bool several_labels, bool query_ids, bool named_features,
                       const std::optional<std::vector<std::string>>& vocabulary) {
             const SparseTextSettings settings{choose("form", form, forms), several_labels, query_ids, named_features,
                                               vocabulary.has_value()};
             return std::make_unique<SparseTextParser>(settings, vocabulary.value_or(std::vector<std::string>()));
           }),
           py::kw_only(), py::arg("form"), py::arg("several_labels") = false, py::arg("query_ids") = true,
           py::arg("named_features") = false, py::arg("vocabulary") = py::none())
      .def(
          "feed",
          [](SparseTextParser& self, const py::bytes& text) {
            const std::string_view view = text;
            run(1, py::none(), [&](const Execution& execution) { self.feed(view, execution); });
          },
          py::arg("text"))
      .def("finish",
           [](SparseTextParser& self) {
             SparseTextRows rows;
             run(1, py::none(), [&](const Execution& execution) { rows = self.finish(execution); });
             py::dict out;
             out["values"] = as_array(std::move(rows.values));
             out["ids"] = as_array(std::move(rows.ids));
             out["offsets"] = as_array(std::move(rows.offsets));
             out["labels"] = as_array(std::move(rows.labels));
             out["label_offsets"] = as_array(std::move(rows.label_offsets));
             out["weights"] = as_array(std::move(rows.weights));
             out["totals"] = as_array(std::move(rows.totals));
             out["weighted"] = rows.weighted;
             out["smallest"] = as_place(rows.smallest);
             out["largest"] = as_place(rows.largest);
             return out;
           })
      .def("vocabulary", [](const SparseTextParser& self) {
        py::list names;
        for (const std::string& name : self.vocabulary()) names.append(py::bytes(name));
        return names;
      });
}

}  // namespace taxolearn::python
