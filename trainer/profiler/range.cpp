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

std::string Range::text_of(std::string_view part) { return std::string(part); }

std::string Range::text_of(int64_t part) { return std::to_string(part); }

void Range::begin(std::initializer_list<std::string> parts) {
  std::string name;
  for (const std::string& part : parts) name += part;
  record_->function.before(std::move(name));
}

}  // namespace tycho
