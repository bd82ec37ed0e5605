// Positions of a unit's parameters in its flat buffers. Optimizer, communicator, checkpoint and export all
// walk the same extents. Torch-free.
#pragma once
#include <memory>
#include <vector>

#include "trainer/layout/param_spec.h"

namespace tycho {

/// Part of one parameter in a flat buffer, counted in elements: the whole parameter, unless a rank owns only
/// a part of it.
struct Extent {
  int64_t begin = 0, end = 0;  // in the buffer
  const ParamSpec* spec = nullptr;
  size_t param = 0;   // index of the parameter in its unit
  int64_t first = 0;  // element of the parameter, in row-major order, that is at `begin`

  int64_t size() const { return end - begin; }
  bool is_whole() const { return size() == numel(spec->shape); }
};

/// A tensor in a flat buffer: `shape` in row-major order, starting at element `begin`.
struct FlatView {
  int64_t begin = 0;
  Shape shape;
};

/// Parameters of a unit one after the other, each followed by its zero rows, which are in no extent. Copies
/// share the specs that extents point to.
class UnitLayout {
 public:
  /// Throws Error (kFailure) when a stack's matrices differ in more than their rows.
  explicit UnitLayout(UnitSpec spec);

  const UnitSpec& spec() const { return *spec_; }
  int64_t numel() const { return numel_; }
  /// One extent per parameter.
  const std::vector<Extent>& extents() const { return extents_; }
  /// Views of the parameters, then of the stacks.
  const std::vector<FlatView>& views() const { return views_; }
  /// Returns the extents of elements [begin, end) of the unit, in a buffer that holds just these elements.
  std::vector<Extent> extents_in(int64_t begin, int64_t end) const;

 private:
  std::shared_ptr<const UnitSpec> spec_;
  int64_t numel_ = 0;
  std::vector<Extent> extents_;
  std::vector<FlatView> views_;
};

}  // namespace tycho
