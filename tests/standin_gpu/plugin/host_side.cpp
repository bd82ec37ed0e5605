// Tells the checker what the host does: which ranges of the program it is in, and copies by the CPU into and
// out of pinned memory.
#include <ATen/ops/copy_native.h>
#include <ATen/record_function.h>
#include <torch/library.h>

#include <memory>

#include "tests/standin_gpu/plugin/boxed.h"
#include "tests/standin_gpu/plugin/uses.h"
#include "tests/standin_gpu/runtime/checker.h"
#include "tests/standin_gpu/runtime/state.h"

namespace standin {
namespace {

thread_local int num_operators = 0;

std::unique_ptr<at::ObserverContext> begin_range(const at::RecordFunction& range) {
  enter(range.name());
  return nullptr;
}
void end_range(const at::RecordFunction&, at::ObserverContext*) { leave(); }

at::Tensor& copy_on_host(at::Tensor& to, const at::Tensor& from, bool non_blocking) {
  if (num_operators == 0 && to.is_cpu() && from.is_cpu()) {
    Uses uses;
    if (owner_of(from.const_data_ptr()).place == Place::kHost) add_uses(uses, from, /*written=*/false);
    if (owner_of(to.const_data_ptr()).place == Place::kHost) add_uses(uses, to, /*written=*/true);
    used_by_host("a copy by the CPU", uses);
  }
  return at::native::copy_(to, from, non_blocking);
}

}  // namespace

InOperator::InOperator() { ++num_operators; }
InOperator::~InOperator() { --num_operators; }

void watch_the_host() {
  at::addGlobalCallback(
      at::RecordFunctionCallback(begin_range, end_range).scopes({at::RecordScope::USER_SCOPE}));
  static torch::Library library(torch::Library::IMPL, "aten", c10::DispatchKey::CPU, __FILE__, __LINE__);
  library.impl("copy_", TORCH_FN(copy_on_host));
}

}  // namespace standin
