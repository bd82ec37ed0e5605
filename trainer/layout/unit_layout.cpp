// Lays out the parameters of a unit in a flat buffer.
#include "trainer/layout/unit_layout.h"

#include <algorithm>

#include "trainer/base/error.h"

namespace tycho {
namespace {

Shape stacked_shape(const UnitSpec& unit, const UnitSpec::Stack& stack) {
  Shape stacked = unit.params[static_cast<size_t>(stack.first)].shape;
  stacked.front() = 0;
  for (int i = stack.first; i < stack.first + stack.count; ++i) {
    const ParamSpec& param = unit.params[static_cast<size_t>(i)];
    TYCHO_CHECK(std::equal(param.shape.begin() + 1, param.shape.end(), stacked.begin() + 1, stacked.end()),
                "[units] {} cannot be stacked in {}", param.name, unit.name);
    stacked.front() += param.shape.front() + param.zero_rows;
  }
  return stacked;
}

}  // namespace

UnitLayout::UnitLayout(UnitSpec spec) : spec_(std::make_shared<const UnitSpec>(std::move(spec))) {
  for (size_t i = 0; i < spec_->params.size(); ++i) {
    const ParamSpec& param = spec_->params[i];
    extents_.push_back({numel_, numel_ + tycho::numel(param.shape), &param, i});
    views_.push_back({numel_, param.shape});
    numel_ += param.room();
  }
  for (const UnitSpec::Stack& stack : spec_->stacks)
    views_.push_back({extents_[static_cast<size_t>(stack.first)].begin, stacked_shape(*spec_, stack)});
}

std::vector<Extent> UnitLayout::extents_in(int64_t begin, int64_t end) const {
  TYCHO_CHECK(0 <= begin && begin <= end && end <= numel(),
              "[units] expected elements [{}, {}) of {}, which has {}", begin, end, spec_->name, numel());
  std::vector<Extent> parts;
  for (const Extent& whole : extents_) {
    const int64_t from = std::max(begin, whole.begin), to = std::min(end, whole.end);
    if (from < to)
      parts.push_back({from - begin, to - begin, whole.spec, whole.param, whole.first + from - whole.begin});
  }
  return parts;
}

}  // namespace tycho
