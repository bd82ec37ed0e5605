// The Lua face of tensors. Rows and dimensions count from 1 here, ends are included, as in Lua.
#include "bindings/run/session_objects.h"
#include "trainer/session/tensor_text.h"

namespace tycho {
namespace {

constexpr int64_t kMaxListed = 1'000'000;  // numbers in Lua tables

TensorObject& self(Call& call) { return call.self<TensorObject>(); }
const TensorView& view(Call& call) { return *self(call).view; }
bool unicode(Call& call) { return self(call).of == nullptr || self(call).of->unicode; }

[[noreturn]] void bad_shape(Call& call, const std::string& what) {
  std::string shape;
  for (const int64_t size : view(call).shape()) shape += (shape.empty() ? "" : " x ") + std::to_string(size);
  throw ScriptError("E_SHAPE", fmt::format("{}; this tensor is [{}]", what, shape));
}

int push_same_scope(Call& call, std::unique_ptr<TensorView> part) {
  push_tensor(call, std::move(part), self(call).of);
  return 1;
}

int slice(Call& call) {
  const int64_t from = call.integer(1), to = call.integer(2, from), dim = call.integer(3, 1);
  const auto& shape = view(call).shape();
  if (dim > static_cast<int64_t>(shape.size()))
    bad_shape(call, fmt::format("tensor:slice: no dimension {}", dim));
  if (to < from || to > shape[static_cast<size_t>(dim - 1)])
    bad_shape(call, fmt::format("tensor:slice: {} to {} is not inside dimension {}", from, to, dim));
  return push_same_scope(call, view(call).slice(dim - 1, from - 1, to));
}

int rows(Call& call) {
  const int64_t from = call.integer(1), to = call.integer(2, from);
  std::unique_ptr<TensorView> matrix = view(call).matrix();
  if (to < from || to > matrix->shape()[0])
    bad_shape(call, fmt::format("tensor:rows: {} to {} are not rows of it", from, to));
  return push_same_scope(call, matrix->slice(0, from - 1, to));
}

/// A list of numbers, or of lists for each dimension before the last.
void push_list(lua_State* L, const std::vector<int64_t>& shape, size_t dim, const double*& next) {
  luaL_checkstack(L, 4, "tensor:tolist");
  const int64_t count = shape[dim];
  lua_createtable(L, static_cast<int>(count), 0);
  for (int64_t i = 1; i <= count; ++i) {
    if (dim + 1 == shape.size())
      lua_pushnumber(L, *next++);
    else
      push_list(L, shape, dim + 1, next);
    lua_rawseti(L, -2, static_cast<int>(i));
  }
}

int to_list(Call& call) {
  if (view(call).numel() > kMaxListed)
    bad_shape(call, fmt::format("tensor:tolist gives at most {} numbers: take rows first", kMaxListed));
  const std::vector<double> values = view(call).values();
  if (view(call).shape().empty()) return call.push(values.at(0));
  const double* next = values.data();
  push_list(call.L, view(call).shape(), 0, next);
  return 1;
}

int item(Call& call) {
  if (view(call).numel() != 1) bad_shape(call, "tensor:item wants one number");
  return call.push(view(call).values()[0]);
}

int push_shape(Call& call) {
  Json shape = Json::array();
  for (const int64_t size : view(call).shape()) shape.push_back(size);
  return call.push(shape);
}

int push_gradient(Call& call) {
  const TensorObject& tensor = self(call);
  if (tensor.param < 0) return call.push_nil();
  std::unique_ptr<TensorView> gradient = tensor.of->session->grad(tensor.param);
  if (!gradient) return call.push_nil();
  push_tensor(call, std::move(gradient), tensor.of);
  return 1;
}

int name(Call& call) {
  const TensorObject& tensor = self(call);
  if (tensor.param < 0) return call.push_nil();
  return call.push(tensor.of->session->params()[static_cast<size_t>(tensor.param)].name);
}

int histogram(Call& call) {
  auto result =
      std::make_shared<std::pair<Histogram, bool>>(view(call).histogram(call.integer(1, 13)), unicode(call));
  return call.push_own(histogram_class(), result);
}

int keep(Call& call) { return push_same_scope(call, view(call).clone()); }
int to_cpu(Call& call) { return push_same_scope(call, view(call).clone(/*on_host=*/true)); }

int show(Call& call) {
  return call.push(tensor_text(view(call), call.integer(1, 20), call.integer(2, 8), unicode(call)));
}

using HistogramObject = std::pair<Histogram, bool>;  // and whether to draw with Unicode

}  // namespace

const Class& tensor_class() {
  using Kind = Arg::Kind;
  static const Class object = {
      .name = "tensor",
      .doc = "Numbers on a device. Rows and dimensions count from 1. A view of the model changes with it.",
      .fields = {{"name", "string?", "Of a parameter.", name},
                 {"shape", "integer[]", "Sizes of its dimensions.", push_shape},
                 {"dtype", "string", "f32, bf16, i32, ...", [](Call& c) { return c.push(view(c).dtype()); }},
                 {"device", "string", "cpu, cuda:0, ...", [](Call& c) { return c.push(view(c).device()); }},
                 {"numel", "integer", "How many numbers.", [](Call& c) { return c.push(view(c).numel()); }},
                 {"grad", "tycho.run.Tensor?",
                  "Of a parameter that is trained: its gradient after the newest step.", push_gradient}},
      .methods =
          {{"item", "number", "The one number that it holds.", {}, item},
           {"mean", "number", "Mean.", {}, [](Call& c) { return c.push(view(c).stats().mean); }},
           {"std",
            "number",
            "Standard deviation of the population.",
            {},
            [](Call& c) { return c.push(view(c).stats().std); }},
           {"min", "number", "Least number.", {}, [](Call& c) { return c.push(view(c).stats().min); }},
           {"max", "number", "Largest number.", {}, [](Call& c) { return c.push(view(c).stats().max); }},
           {"norm", "number", "L2 norm.", {}, [](Call& c) { return c.push(view(c).stats().norm); }},
           {"finite",
            "boolean",
            "No NaN and no infinity in it.",
            {},
            [](Call& c) { return c.push(view(c).stats().finite); }},
           {"histogram",
            "tycho.run.Histogram",
            "Counts of its numbers in equal parts of their range.",
            {{"n", Kind::kInteger, "Parts; 13 by default.", true, 1, 1000}},
            histogram},
           {"slice",
            "tycho.run.Tensor",
            "A part of one dimension; a view.",
            {{"from", Kind::kInteger, "First position.", false, 1},
             {"to", Kind::kInteger, "Last position; `from` by default.", true, 1},
             {"dim", Kind::kInteger, "Dimension; 1 by default.", true, 1}},
            slice},
           {"rows",
            "tycho.run.Tensor",
            "Rows of its last dimension; a view.",
            {{"from", Kind::kInteger, "First row.", false, 1},
             {"to", Kind::kInteger, "Last row; `from` by default.", true, 1}},
            rows},
           {"tolist", "number[]", "Its numbers as tables.", {}, to_list},
           {"keep",
            "tycho.run.Tensor",
            "A copy that stays when the step, the callback or the run is over.",
            {},
            keep},
           {"cpu", "tycho.run.Tensor", "A copy in host memory.", {}, to_cpu},
           {"show",
            "string",
            "As text, with more rows.",
            {{"rows", Kind::kInteger, "20 by default.", true, 1, 10000},
             {"columns", Kind::kInteger, "8 by default.", true, 1, 1000}},
            show}},
      .text = [](Call& c) { return c.push(tensor_text(view(c), 4, 8, unicode(c))); }};
  return object;
}

const Class& histogram_class() {
  static const Class object = {
      .name = "histogram",
      .doc = "Counts in equal parts of a range.",
      .fields = {{"low", "number", "Where the first part begins.",
                  [](Call& c) { return c.push(c.self<HistogramObject>().first.low); }},
                 {"high", "number", "Where the last part ends.",
                  [](Call& c) { return c.push(c.self<HistogramObject>().first.high); }},
                 {"counts", "integer[]", "Of each part.",
                  [](Call& c) { return c.push(Json(c.self<HistogramObject>().first.counts)); }}},
      .methods = {},
      .text = [](Call& c) {
        const auto& [histogram, unicode] = c.self<HistogramObject>();
        return c.push(histogram_text(histogram, unicode));
      }};
  return object;
}

void push_tensor(Call& call, std::unique_ptr<TensorView> view, std::shared_ptr<SessionRef> of,
                 int64_t param) {
  const int64_t bytes = view->num_bytes();
  auto tensor = std::make_shared<TensorObject>(TensorObject{std::move(view), std::move(of), param});
  if (bytes > 0)
    call.push_own(tensor_class(), std::move(tensor), bytes);
  else
    call.push_object(tensor_class(), std::move(tensor));
}

}  // namespace tycho
