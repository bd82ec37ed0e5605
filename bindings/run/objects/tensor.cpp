// The Lua tensor object. Rows and dimensions count from 1 and ends are included, as in Lua.
#include <cmath>

#include "bindings/run/npy.h"
#include "bindings/run/objects/tensor_math.h"
#include "bindings/run/session_objects.h"
#include "bindings/run/tensor_text.h"

namespace tycho {
namespace {

constexpr int64_t kMaxListed = 1'000'000;  // numbers in Lua tables

TensorObject& self(Call& call) { return call.self<TensorObject>(); }
const TensorView& view(Call& call) { return *self(call).view; }
bool unicode(Call& call) { return self(call).of == nullptr || self(call).of->unicode; }

int push_same_scope(Call& call, std::unique_ptr<TensorView> part) {
  push_tensor(call, std::move(part), self(call).of);
  return 1;
}

int slice(Call& call) {
  const int64_t from = call.integer(1), to = call.integer(2, from), dim = call.integer(3, 1);
  const auto& shape = view(call).shape();
  if (dim > static_cast<int64_t>(shape.size()))
    refuse_shape(call, fmt::format("tensor:slice: no dimension {}", dim));
  if (to < from || to > shape[static_cast<size_t>(dim - 1)])
    refuse_shape(call, fmt::format("tensor:slice: {} to {} is not inside dimension {}", from, to, dim));
  return push_same_scope(call, view(call).slice(dim - 1, from - 1, to));
}

int rows(Call& call) {
  const int64_t from = call.integer(1), to = call.integer(2, from);
  std::unique_ptr<TensorView> matrix = view(call).matrix();
  if (to < from || to > matrix->shape()[0])
    refuse_shape(call, fmt::format("tensor:rows: the tensor has no rows {} to {}", from, to));
  return push_same_scope(call, matrix->slice(0, from - 1, to));
}

/// Pushes a list of numbers, or a nested list for each dimension before the last.
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
    refuse_shape(call, fmt::format("tensor:tolist returns at most {} numbers: take rows first", kMaxListed));
  const std::vector<double> values = view(call).values();
  if (view(call).shape().empty()) return call.push(values.at(0));
  const double* next = values.data();
  push_list(call.L, view(call).shape(), 0, next);
  return 1;
}

int item(Call& call) {
  if (view(call).numel() != 1) refuse_shape(call, "tensor:item expects one number");
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

int moment(Call& call) {
  const TensorObject& tensor = self(call);
  if (tensor.param < 0) return call.push_nil();
  std::unique_ptr<TensorView> kept = tensor.of->session->moment(tensor.param, call.text(1));
  if (!kept) return call.push_nil();
  push_tensor(call, std::move(kept), tensor.of);
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

/// Indexes a tensor. w[2] is the second row, or the second number of a vector; w[w:gt(0)] is a vector of the
/// elements greater than 0.
int at(Call& call) {
  if (Objects::class_of(call.L, 2) == &tensor_class()) {
    return push_same_scope(call, masked_by(call, 2));
  }
  if (lua_type(call.L, 2) != LUA_TNUMBER) return call.push_nil();
  const double wanted = lua_tonumber(call.L, 2);
  const std::vector<int64_t>& shape = view(call).shape();
  if (shape.empty()) refuse_shape(call, "tensor[i] expects dimensions; tensor:item() is its number");
  if (wanted != std::floor(wanted) || wanted < 1 || wanted > static_cast<double>(shape[0]))
    refuse_shape(call, fmt::format("tensor[{}]: positions are 1 to {}", wanted, shape[0]));
  std::unique_ptr<TensorView> part = view(call).select(0, static_cast<int64_t>(wanted) - 1);
  if (part->shape().empty()) return call.push(part->values()[0]);
  return push_same_scope(call, std::move(part));
}

int length(Call& call) {
  const std::vector<int64_t>& shape = view(call).shape();
  return call.push(shape.empty() ? int64_t{0} : shape[0]);
}

int save_tensor(Call& call) {
  const TensorObject& tensor = self(call);
  if (tensor.of == nullptr || tensor.of->writes_files) save_npy(real_files(), view(call), call.text(1));
  return call.push(call.text(1));
}

using HistogramObject = std::pair<Histogram, bool>;  // and whether to draw with Unicode

std::vector<Method> tensor_methods() {
  using Kind = Arg::Kind;
  std::vector<Method> methods = {
      {"item", "number", "The value of a one-element tensor.", {}, item},
      {"std",
       "number",
       "Population standard deviation.",
       {},
       [](Call& c) { return c.push(view(c).stats().std); }},
      {"norm", "number", "L2 norm.", {}, [](Call& c) { return c.push(view(c).stats().norm); }},
      {"finite",
       "boolean",
       "True if it has no NaN and no infinity.",
       {},
       [](Call& c) { return c.push(view(c).stats().finite); }},
      {"histogram",
       "tycho.run.Histogram",
       "Counts of its elements in bins of equal width.",
       {{"n", Kind::kInteger, "Parts; default 13.", true, 1, 1000}},
       histogram},
      {"moment",
       "tycho.run.Tensor?",
       "What the optimizer keeps of a trained parameter, as a copy; nil where it keeps nothing of that "
       "name.",
       {{"name", Kind::kText, "As in checkpoints: exp_avg, exp_avg_sq, momentum_buffer.", false}},
       moment},
      {"slice",
       "tycho.run.Tensor",
       "A range of one dimension, as a view.",
       {{"from", Kind::kInteger, "First position.", false, 1},
        {"to", Kind::kInteger, "Last position; default `from`.", true, 1},
        {"dim", Kind::kInteger, "Dimension; default 1.", true, 1}},
       slice},
      {"rows",
       "tycho.run.Tensor",
       "Rows of its last dimension, as a view.",
       {{"from", Kind::kInteger, "First row.", false, 1},
        {"to", Kind::kInteger, "Last row; default `from`.", true, 1}},
       rows},
      {"tolist", "number[]", "Its elements as Lua tables.", {}, to_list},
      {"keep",
       "tycho.run.Tensor",
       "A copy that stays valid after the step, the callback or the run.",
       {},
       keep},
      {"cpu", "tycho.run.Tensor", "A copy in host memory.", {}, to_cpu},
      {"save",
       "string",
       "Writes it to a new NumPy file as float32 and returns its path.",
       {{"path", Kind::kText, "Must end in .npy; the file must not exist yet.", false}},
       save_tensor},
      {"show",
       "string",
       "Returns it as text, with more rows.",
       {{"rows", Kind::kInteger, "Default 20.", true, 1, 10000},
        {"columns", Kind::kInteger, "Default 8.", true, 1, 1000}},
       show}};
  const std::vector<Method> computing = tensor_math_methods();
  methods.insert(methods.end(), computing.begin(), computing.end());
  return methods;
}

}  // namespace

void refuse_shape(Call& call, const std::string& what) {
  std::string shape;
  for (const int64_t size : view(call).shape()) shape += (shape.empty() ? "" : " x ") + std::to_string(size);
  throw ScriptError("E_SHAPE", fmt::format("{}; this tensor is [{}]", what, shape));
}

const Class& tensor_class() {
  static const Class object = {
      .name = "tensor",
      .doc =
          "A tensor on a device. Rows and dimensions count from 1; w[1] is the first row, w[w:gt(0)] what "
          "is positive, w * 2 a new tensor. A view of the model changes with it.",
      .fields = {{"name", "string?", "Of a parameter.", name},
                 {"shape", "integer[]", "Size of each dimension.", push_shape},
                 {"dtype", "string", "f32, bf16, i32, ...", [](Call& c) { return c.push(view(c).dtype()); }},
                 {"device", "string", "cpu, cuda:0, ...", [](Call& c) { return c.push(view(c).device()); }},
                 {"numel", "integer", "Number of elements.", [](Call& c) { return c.push(view(c).numel()); }},
                 {"grad", "tycho.run.Tensor?", "Gradient after the newest step, for a trained parameter.",
                  push_gradient}},
      .methods = tensor_methods(),
      .text = [](Call& c) { return c.push(tensor_text(view(c), 4, 8, unicode(c))); },
      .index = at,
      .length = length,
      .operators = tensor_operators()};
  return object;
}

const Class& histogram_class() {
  static const Class object = {
      .name = "histogram",
      .doc = "Counts in bins of equal width.",
      .fields = {{"low", "number", "Lower edge of the first bin.",
                  [](Call& c) { return c.push(c.self<HistogramObject>().first.low); }},
                 {"high", "number", "Upper edge of the last bin.",
                  [](Call& c) { return c.push(c.self<HistogramObject>().first.high); }},
                 {"counts", "integer[]", "Count of each bin.",
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
  const OwnedMemory memory = {view->num_bytes(), view->storage()};
  auto tensor = std::make_shared<TensorObject>(TensorObject{std::move(view), std::move(of), param});
  if (memory.bytes > 0)
    call.push_own(tensor_class(), std::move(tensor), memory);
  else
    call.push_object(tensor_class(), std::move(tensor));
}

}  // namespace tycho
