// One row per machine; between two ranks stands a sign for the slowest axis on which they differ.
#include "trainer/plan/mesh_drawing.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <optional>
#include <vector>

namespace tycho {
namespace {

constexpr size_t kColumns = 80, kLabel = 13;
constexpr int64_t kShownMachines = 4;
/// Separators between ranks, in the order of Axis.
constexpr std::array<const char*, kNumAxes> kSigns = {" || ", " | ", "  ", "~", "="};

/// Returns the slowest axis on which two ranks differ.
size_t slowest_change(const MeshShape& mesh, int a, int b) {
  const MeshCoordinates one = coordinates_of(mesh, a), other = coordinates_of(mesh, b);
  for (size_t i = 0; i < kNumAxes; ++i)
    if (one[i] != other[i]) return i;
  return kNumAxes;
}

/// Returns the ranks of a machine; adjacent ones that differ only on axis `folded` or a faster one are
/// "first..last".
std::string row(const MeshShape& mesh, int begin, int end, size_t folded) {
  const size_t width = std::to_string(mesh.num_ranks() - 1).size();
  std::string text;
  for (int rank = begin; rank < end;) {
    int last = rank;
    while (last + 1 < end && slowest_change(mesh, last, last + 1) >= folded) ++last;
    if (rank > begin) text += kSigns[slowest_change(mesh, rank - 1, rank)];
    text += last == rank ? fmt::format("{:>{}}", rank, width)
                         : fmt::format("{:>{}}..{:<{}}", rank, width, last, width);
    rank = last + 1;
  }
  while (text.ends_with(' ')) text.pop_back();
  return text;
}

/// Returns the first axis to fold so that all rows fit, kNumAxes for none.
size_t folding(const MeshShape& mesh, int64_t per_machine) {
  for (size_t folded = kNumAxes; folded > 0; --folded) {
    size_t longest = 0;
    for (int begin = 0; begin < mesh.num_ranks(); begin += static_cast<int>(per_machine)) {
      const int end = std::min<int>(mesh.num_ranks(), begin + static_cast<int>(per_machine));
      longest = std::max(longest, row(mesh, begin, end, folded).size());
    }
    if (longest + kLabel <= kColumns) return folded;
  }
  return 0;
}

std::string joined(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

/// Returns "dp_replicate crosses machines, tp does not".
std::string crossings(const MeshShape& mesh, int64_t per_machine) {
  std::vector<std::string> across, within;
  for (size_t i = 0; i < kNumAxes; ++i) {
    if (mesh.sizes[i] == 1) continue;
    const Axis axis = static_cast<Axis>(i);
    int stride = 1;  // distance of adjacent ranks on this axis
    for (size_t faster = i + 1; faster < kNumAxes; ++faster) stride *= mesh.sizes[faster];
    bool crosses = false;
    for (int rank = 0; rank + stride < mesh.num_ranks() && !crosses; ++rank)
      crosses = coordinates_of(mesh, rank)[i] + 1 < mesh.sizes[i] &&
                (rank + stride) / per_machine != rank / per_machine;
    (crosses ? across : within).push_back(axis_name(axis));
  }
  if (across.empty()) return "all ranks are on one machine";
  std::string text = joined(across) + (across.size() > 1 ? " cross machines" : " crosses machines");
  if (!within.empty())
    text += fmt::format("; {} within one", joined(within) + (within.size() > 1 ? " stay" : " stays"));
  return text;
}

std::string legend(const MeshShape& mesh, size_t folded) {
  std::vector<std::string> signs;
  for (size_t i = 0; i < kNumAxes; ++i)
    if (mesh.sizes[i] > 1)
      signs.push_back(
          fmt::format("{} \"{}\"", axis_name(static_cast<Axis>(i)), i < folded ? kSigns[i] : ".."));
  return "between ranks: " + joined(signs);
}

}  // namespace

std::string draw_mesh(const MeshShape& mesh, int64_t ranks_per_node) {
  const int num_ranks = mesh.num_ranks();
  if (num_ranks == 1) return "";
  const int64_t machines = (num_ranks + ranks_per_node - 1) / ranks_per_node;
  const size_t folded = folding(mesh, ranks_per_node);
  std::string text;
  for (int64_t machine = 0; machine < machines; ++machine) {
    const auto begin = static_cast<int>(machine * ranks_per_node);
    const int end = std::min<int>(num_ranks, begin + static_cast<int>(ranks_per_node));
    if (machines > kShownMachines && machine == kShownMachines - 1) {
      const int64_t left = machines - kShownMachines;
      text += fmt::format("  ... {} more machine{}\n", left, left == 1 ? "" : "s");
      machine = machines - 2;
      continue;
    }
    text += fmt::format("  {:<{}}{}\n", fmt::format("machine {}", machine), kLabel - 2,
                        row(mesh, begin, end, folded));
  }
  return text + fmt::format("  {}\n  {}\n", legend(mesh, folded), crossings(mesh, ranks_per_node));
}

}  // namespace tycho
