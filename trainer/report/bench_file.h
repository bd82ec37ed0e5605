// What `tycho bench ... --json` printed into a file, as a table and drawings. Torch-free.
#pragma once
#include <string>
#include <utility>
#include <vector>

namespace tycho {

/// Values over sizes in bytes.
struct BenchLine {
  std::string name;
  std::vector<double> bytes, values;
};

/// Lines, or bars where there are none.
struct BenchPlot {
  std::string title, label;  // of the values
  std::vector<BenchLine> lines;
  std::vector<std::pair<std::string, double>> bars;
};

struct BenchFile {
  std::string title;                            // "Collectives of 2 ranks (comm.json)"
  std::vector<std::vector<std::string>> table;  // the first row names the columns
  std::vector<BenchPlot> plots;
};

/// Of comm, storage, step or data. Throws Error (kUnusable) for any other file.
BenchFile read_bench_file(const std::string& path);

/// As a section of a page of HTML.
std::string bench_section(const BenchFile& bench);

}  // namespace tycho
