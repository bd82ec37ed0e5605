// Marks ranges for LibTorch's profilers.
#include "trainer/profiler/range.h"

#include <ATen/record_function.h>

namespace tycho {

struct Range::Record {
  at::RecordFunction function;
};

void Range::End::operator()(Record* record) const { delete record; }

std::unique_ptr<Range::Record, Range::End> Range::record_if_wanted() {
  std::optional<at::StepCallbacks> callbacks = at::getStepCallbacksUnlessEmpty(at::RecordScope::USER_SCOPE);
  if (!callbacks) return nullptr;
  return std::unique_ptr<Record, End>(new Record{at::RecordFunction(std::move(*callbacks))});
}

void Range::begin(std::string name) { record_->function.before(std::move(name)); }

}  // namespace tycho
