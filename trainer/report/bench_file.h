// Reads a file of `tycho bench ... --json`, and shows it as a table and plots. Torch-free.
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

/// Lines, or bars when there are no lines.
struct BenchPlot {
  std::string title, label;  // of the values
  std::vector<BenchLine> lines;
  std::vector<std::pair<std::string, double>> bars;
};

struct BenchFile {
  std::string title;                            // "Collectives of 2 ranks (comm.json)"
  std::vector<std::vector<std::string>> table;  // the first row is the header
  std::vector<BenchPlot> plots;
};

/// Reads a file of `tycho bench` comm, storage, step or data. Throws Error (kUnusable) for any other file.
BenchFile read_bench_file(const std::string& path);

/// Returns the benchmark as a section of an HTML page.
std::string bench_section(const BenchFile& bench);

}  // namespace tycho
