// A rank is a number whose digits are its coordinates.
#include "trainer/recipe/mesh_shape.h"

#include <fmt/format.h>

#include <utility>

namespace tycho {
namespace {

Axis axis_at(size_t i) { return static_cast<Axis>(i); }

}  // namespace

int MeshShape::size(AxisSet axes) const {
  int product = 1;
  for (size_t i = 0; i < kNumAxes; ++i)
    if (axes.has(axis_at(i))) product *= sizes[i];
  return product;
}

int MeshShape::num_ranks() const {
  int product = 1;
  for (const int size : sizes) product *= size;
  return product;
}

MeshCoordinates coordinates_of(const MeshShape& shape, int rank) {
  MeshCoordinates coordinates{};
  for (size_t i = kNumAxes; i-- > 0;) {
    coordinates[i] = rank % shape.sizes[i];
    rank /= shape.sizes[i];
  }
  return coordinates;
}

int rank_at(const MeshShape& shape, const MeshCoordinates& coordinates) {
  int rank = 0;
  for (size_t i = 0; i < kNumAxes; ++i) rank = rank * shape.sizes[i] + coordinates[i];
  return rank;
}

std::vector<int> ranks_of_group(const MeshShape& shape, AxisSet axes, int rank) {
  const MeshCoordinates own = coordinates_of(shape, rank);
  std::vector<int> ranks;
  for (int other = 0; other < shape.num_ranks(); ++other) {
    const MeshCoordinates its = coordinates_of(shape, other);
    bool is_in = true;
    for (size_t i = 0; i < kNumAxes; ++i) is_in &= axes.has(axis_at(i)) || its[i] == own[i];
    if (is_in) ranks.push_back(other);
  }
  return ranks;
}

AxisSet used_axes(const MeshShape& shape, AxisSet axes) {
  AxisSet used;
  for (size_t i = 0; i < kNumAxes; ++i)
    if (axes.has(axis_at(i)) && shape.sizes[i] > 1) used = used | axis_at(i);
  return used;
}

std::string describe(const MeshShape& shape) {
  std::string text;
  for (size_t i = 0; i < kNumAxes; ++i)
    if (shape.sizes[i] > 1)
      text += fmt::format("{}{} {}", text.empty() ? "" : " x ", kAxisNames[i], shape.sizes[i]);
  return text.empty() ? "1 rank" : text;
}

Json mesh_json(const MeshShape& shape) {
  Json sizes = Json::object();
  for (size_t i = 0; i < kNumAxes; ++i) sizes[kAxisNames[i]] = shape.sizes[i];
  return {{"ranks", shape.num_ranks()}, {"mesh", std::move(sizes)}};
}

}  // namespace tycho
