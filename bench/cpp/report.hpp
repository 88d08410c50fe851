// What was measured, for people (a table) and for programs (JSON).
#pragma once

#include <ostream>

#include "cases.hpp"

namespace taxolearn::bench {

struct Measurement {
  Case what;
  Sample time;
  double error = 0.0;
  std::string limit;            ///< what the roofline says binds: flops, exponentials, memory or cache
  double roof_seconds = 0.0;    ///< the least time by the roofline
  double gather_seconds = 0.0;  ///< the least time of the row reads; 0 where there are none
};

Measurement measure_bounds(const Case& what, Roofline& roofline);

void print_machine(std::ostream& out, const Csr<double>& X, const Shape& shape, Roofline& roofline);
void print_table_head(std::ostream& out);
void print_row(std::ostream& out, const Measurement& row, double fastest);
void write_json(std::ostream& out, const Csr<double>& X, const std::string& source, const Shape& shape,
                Roofline& roofline, const std::vector<Measurement>& rows);

}  // namespace taxolearn::bench
