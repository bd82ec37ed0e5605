// Another version of the package has other arguments, in another order: operators are called by the names of
// their arguments, and refused if they lack one of ours or ask for one that we do not have.
#include "trainer/kernels/attention/flash_attention_3.h"

#include <ATen/Parallel.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/ops/empty.h>
#include <dlfcn.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "trainer/base/environment.h"
#include "trainer/base/error.h"
#include "trainer/kernels/library_folder.h"

namespace tycho {
namespace {

namespace fs = std::filesystem;
constexpr const char* kVariable = "TYCHO_FLASH_ATTN_3";

/// An argument that we pass: its name, and its type as schemas write it.
struct Passed {
  std::string name, type;
};
/// Returns the arguments of both directions, and after them those of one.
std::vector<Passed> passed(const std::vector<Passed>& own) {
  std::vector<Passed> all = {{"q", "Tensor"},
                             {"k", "Tensor"},
                             {"v", "Tensor"},
                             {"cu_seqlens_q", "Tensor?"},
                             {"cu_seqlens_k", "Tensor?"},
                             {"max_seqlen_q", "int?"},
                             {"max_seqlen_k", "int?"},
                             {"softmax_scale", "float?"},
                             {"is_causal", "bool"},
                             {"window_size_left", "int"},
                             {"window_size_right", "int"},
                             {"softcap", "float"}};
  all.insert(all.end(), own.begin(), own.end());
  return all;
}
std::vector<Passed> passed_forward() { return passed({{"num_splits", "int"}}); }
std::vector<Passed> passed_backward() {
  return passed({{"dout", "Tensor"},
                 {"out", "Tensor"},
                 {"softmax_lse", "Tensor"},
                 {"dq", "Tensor?"},
                 {"dk", "Tensor?"},
                 {"dv", "Tensor?"},
                 {"deterministic", "bool"}});
}

/// Returns how a schema differs from the one that we call; "" if it takes our arguments.
std::string difference(const c10::FunctionSchema& schema, const std::vector<Passed>& passed, size_t results) {
  std::vector<std::string> texts;
  for (const Passed& one : passed) {
    const std::optional<int> at = schema.argumentIndexWithName(one.name);
    if (!at) {
      texts.push_back(fmt::format("without {} {}", one.type, one.name));
      continue;
    }
    const std::string type = schema.arguments()[static_cast<size_t>(*at)].type()->str();
    if (type != one.type) texts.push_back(fmt::format("with {} {} for {}", type, one.name, one.type));
  }
  for (const c10::Argument& argument : schema.arguments()) {
    const bool is_passed = std::any_of(passed.begin(), passed.end(),
                                       [&](const Passed& one) { return one.name == argument.name(); });
    if (!is_passed && !argument.default_value())
      texts.push_back(fmt::format("that asks for {}", argument.name()));
  }
  if (schema.returns().size() < results)
    texts.push_back(fmt::format("with {} results for {}", schema.returns().size(), results));
  return fmt::format("{}", fmt::join(texts, ", "));
}

struct Library {
  std::string problem;
  std::optional<c10::OperatorHandle> forward, backward;
};

/// Looks up an operator. Throws Error if it cannot be called.
c10::OperatorHandle operator_of(const std::string& path, const char* name, const std::vector<Passed>& passed,
                                size_t results) {
  const auto found = c10::Dispatcher::singleton().findSchema({name, ""});
  TYCHO_CHECK(found.has_value(), "expected FlashAttention-3 in {}, got a library without the operator {}",
              path, name);
  const std::string wrong = difference(found->schema(), passed, results);
  TYCHO_CHECK(wrong.empty(), "expected another version of FlashAttention-3 in {}, got {} {}", path, name,
              wrong);
  return *found;
}

Library open_library() {
  const fs::path packages = torch_packages();
  const std::string path = flash_3_path(packages);
  Library library;
  try {
    TYCHO_CHECK(!path.empty(), "expected FlashAttention-3, got no {} and no {}",
                (packages / "flash_attn_3" / "_C*.so").string(), kVariable);
    // Lazily: its functions for Python, which are not called, have symbols that nothing here has.
    TYCHO_CHECK(dlopen(path.c_str(), RTLD_LAZY | RTLD_LOCAL) != nullptr,
                "expected FlashAttention-3 for this LibTorch, got: {}", dlerror());
    library.forward = operator_of(path, "flash_attn_3::fwd", passed_forward(), 2);
    library.backward = operator_of(path, "flash_attn_3::bwd", passed_backward(), 0);
  } catch (const Error& error) {
    library.problem = fmt::format(
        "[attention] {}. Install the package flash_attn_3 for this LibTorch, name its library in {}, or set "
        "attention.flash = 2",
        error.what(), kVariable);
  }
  return library;
}

const Library& library() {
  static const Library opened = open_library();
  return opened;
}

using Arguments = std::vector<std::pair<std::string, c10::IValue>>;

/// Calls an operator with our arguments; others get their defaults. Returns its results.
torch::jit::Stack call_by_name(const std::optional<c10::OperatorHandle>& op, const Arguments& given) {
  if (!op) fail(ExitCode::kTopology, "{}", library().problem);
  torch::jit::Stack stack;
  for (const c10::Argument& argument : op->schema().arguments()) {
    const auto own = std::find_if(given.begin(), given.end(),
                                  [&](const auto& one) { return one.first == argument.name(); });
    stack.push_back(own != given.end() ? own->second : argument.default_value().value());
  }
  op->callBoxed(stack);
  return stack;
}

/// Returns the arguments that both directions take.
Arguments common_arguments(const FlashCall& call, const ScoreRules& rules, const FlashHeads& in) {
  Arguments all = {{"q", call.of(in.q, call.queries)},
                   {"k", call.of(in.k, call.keys)},
                   {"v", call.of(in.v, call.keys)},
                   {"softmax_scale", static_cast<double>(rules.scale)},
                   {"is_causal", call.causal},
                   {"window_size_left", call.left.value_or(-1)},
                   {"window_size_right", call.right.value_or(-1)},
                   {"softcap", static_cast<double>(rules.softcap)}};
  if (call.first_query_S1.defined()) {
    all.emplace_back("cu_seqlens_q", call.first_query_S1),
        all.emplace_back("max_seqlen_q", call.most_queries);
    all.emplace_back("cu_seqlens_k", call.first_key_S1), all.emplace_back("max_seqlen_k", call.most_keys);
  }
  return all;
}

}  // namespace

fs::path torch_packages() {
  // LibTorch is torch/lib/libtorch_cpu.so of its package.
  return library_folder(reinterpret_cast<void*>(&at::get_num_threads)).parent_path().parent_path();
}

std::string flash_3_path(const fs::path& packages) {
  if (std::string named = environment_variable(kVariable); !named.empty()) return named;
  std::error_code none;
  std::string found;
  for (const auto& file : fs::directory_iterator(packages / "flash_attn_3", none)) {
    const std::string name = file.path().filename().string();
    if (name.starts_with("_C") && name.ends_with(".so") && (found.empty() || file.path() < found))
      found = file.path().string();
  }
  return found;
}

const std::string& flash_3_problem() { return library().problem; }

FlashResult flash_3_forward(const FlashCall& call, const ScoreRules& rules, const FlashHeads& in) {
  Arguments given = common_arguments(call, rules, in);
  given.emplace_back("num_splits", 1);  // others add parts of the keys, as many as the GPU has room for
  const torch::jit::Stack results = call_by_name(library().forward, given);
  return {results.at(0).toTensor(), results.at(1).toTensor(), {}, {}};
}

FlashHeads flash_3_backward(const FlashCall& call, const ScoreRules& rules, const FlashHeads& in,
                            const Tensor& out, const Tensor& dout, const Tensor& log_sum_exp,
                            const FlashHeads& into) {
  const auto gradient = [&](const Tensor& x, const Tensor& given, const TokenSpan& tokens) {
    return given.defined() ? call.of(given, tokens) : at::empty(call.of(x, tokens).sizes(), x.options());
  };
  const FlashHeads d = {gradient(in.q, into.q, call.queries), gradient(in.k, into.k, call.keys),
                        gradient(in.v, into.v, call.keys)};
  Arguments given = common_arguments(call, rules, in);
  given.emplace_back("dout", call.of(dout, call.queries)),
      given.emplace_back("out", call.of(out, call.queries));
  given.emplace_back("softmax_lse", log_sum_exp);
  given.emplace_back("dq", d.q), given.emplace_back("dk", d.k), given.emplace_back("dv", d.v);
  given.emplace_back("deterministic", !rules.any_order);
  call_by_name(library().backward, given);
  return d;
}

}  // namespace tycho
