// Reads and writes the JSON of expressions.
#include "trainer/expression/expression_json.h"

#include <cmath>
#include <limits>
#include <set>

#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr size_t kMostNameBytes = 256;

template <class... Args>
[[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) {
  fail(ExitCode::kRecipe, "[expression] {}. Expressions are written by t.*.define: see docs/maths.md",
       fmt::format(format, std::forward<Args>(args)...));
}

/// Returns a value's beginning, for messages.
std::string excerpt(const Json& json) {
  const std::string kind = json.type_name();
  if (json.is_structured()) return kind + " of " + std::to_string(json.size());
  std::string text = json.dump(-1, ' ', true, Json::error_handler_t::replace);
  if (text.size() > 60) text = text.substr(0, 60) + "...";
  return text;
}

const Json& list_of(const Json& json, const char* key, size_t most) {
  const auto found = json.find(key);
  if (found == json.end() || !found->is_array()) refuse("expected the list '{}', got none", key);
  if (found->size() > most) refuse("expected at most {} {}, got {}", most, key, found->size());
  return *found;
}

std::string name_of(const Json& part, const char* what, size_t index, std::set<std::string>& names) {
  const auto found = part.is_object() ? part.find("name") : part.end();
  if (!part.is_object() || found == part.end() || !found->is_string())
    refuse("{} {}: expected a table with a name, got {}", what, index, excerpt(part));
  std::string name = *found;
  if (name.empty() || name.size() > kMostNameBytes)
    refuse("{} {}: expected a name of 1 to {} bytes, got {}", what, index, kMostNameBytes, name.size());
  if (!names.insert(name).second)
    refuse("{} {}: expected a name of its own, got '{}' again", what, index, name);
  return name;
}

/// Returns the integer in [0, end), or refuses it.
int64_t index_in(const Json& json, int64_t end, const std::string& what) {
  const bool fits = json.is_number_integer() && json.get<int64_t>() >= 0 && json.get<int64_t>() < end &&
                    (!json.is_number_unsigned() || json.get<uint64_t>() < static_cast<uint64_t>(end));
  // Lua's numbers are doubles.
  if (!fits && json.is_number_float()) {
    const double value = json;
    if (value >= 0 && value < static_cast<double>(end) && value == std::floor(value))
      return static_cast<int64_t>(value);
  }
  if (!fits) refuse("{} from 0 to {}, got {}", what, end - 1, excerpt(json));
  return json;
}

ExpressionInput read_input(const Json& json, size_t index, std::set<std::string>& names) {
  ExpressionInput input;
  input.name = name_of(json, "input", index, names);
  for (const auto& [key, value] : json.items()) {
    if (key == "scalar" && value.is_boolean()) {
      input.scalar = value;
    } else if (key == "shape" && value.is_array() && value.size() == 2) {
      input.shape.rows = index_in(value[0], kMostColumns, "input " + input.name + ": expected rows");
      input.shape.columns = index_in(value[1], kMostColumns, "input " + input.name + ": expected columns");
      if (input.shape.rows == 0 || input.shape.columns == 0)
        refuse("input '{}': expected a shape of at least [1, 1], got [{}, {}]", input.name, input.shape.rows,
               input.shape.columns);
    } else if (key != "name") {
      refuse("input '{}': expected scalar = true or shape = [rows, columns], got {} {}", input.name, key,
             excerpt(value));
    }
  }
  if (input.scalar && !input.shape.is_flat())
    refuse("input '{}': expected a scalar without a shape, got one", input.name);
  return input;
}

double read_number(const Json& json, size_t node) {
  if (json.is_number()) return json;
  if (json == "inf") return std::numeric_limits<double>::infinity();
  if (json == "-inf") return -std::numeric_limits<double>::infinity();
  if (json == "nan") return std::numeric_limits<double>::quiet_NaN();
  if (json == "-0") return -0.0;
  refuse("node {}: expected a number, \"inf\", \"-inf\", \"nan\" or \"-0\", got {}", node, excerpt(json));
}

Op read_op(const Json& json, size_t node) {
  if (json.is_string())
    if (const std::optional<Op> op = operation_named(json.get_ref<const std::string&>())) return *op;
  refuse("node {}: expected the name of an operation, got {}", node, excerpt(json));
}

ReducedOver read_over(const Json& json, size_t node) {
  if (json.is_string())
    for (int over = 1; over < 5; ++over)
      if (json.get_ref<const std::string&>() == kReducedOverNames[over])
        return static_cast<ReducedOver>(over);
  refuse("node {}: expected \"row\", \"column\", \"matrix\" or \"tensor\", got {}", node, excerpt(json));
}

Node read_node(const Json& json, size_t index, size_t num_inputs) {
  if (!json.is_array() || json.empty())
    refuse("node {}: expected [operation, arguments ...], got {}", index, excerpt(json));
  Node node;
  node.op = read_op(json[0], index);
  const Operation& known = operation(node.op);
  const bool has_axis = known.kind == OpKind::kReduction;
  const size_t length =
      known.kind == OpKind::kSource ? 2 : static_cast<size_t>(known.arguments) + 1 + has_axis;
  if (json.size() != length)
    refuse("node {}: expected {} with {} items after it, got {}", index, known.name, length - 1,
           json.size() - 1);
  if (node.op == Op::kNumber) {
    node.number = read_number(json[1], index);
  } else if (node.op == Op::kInput) {
    if (num_inputs == 0) refuse("node {}: expected no input, since there are none, got one", index);
    node.input = static_cast<int32_t>(index_in(json[1], static_cast<int64_t>(num_inputs),
                                               fmt::format("node {}: expected an input", index)));
  } else {
    if (index == 0) refuse("node 0: expected a number or an input, got {}", known.name);
    for (size_t i = 0; i < static_cast<size_t>(known.arguments); ++i)
      node.arguments[i] = static_cast<int32_t>(index_in(
          json[i + 1], static_cast<int64_t>(index),
          fmt::format("node {}: {} expected an argument that stands before it,", index, known.name)));
  }
  if (has_axis) node.over = read_over(json[2], index);
  return node;
}

void read_lines(const Json& json, Expression& out) {
  const auto found = json.find("lines");
  if (found == json.end()) return;
  if (!found->is_array() || found->size() != out.nodes.size())
    refuse("expected a line for each of {} nodes, got {}", out.nodes.size(), excerpt(*found));
  for (const Json& line : *found) {
    if (!line.is_string()) refuse("expected lines as text, got {}", excerpt(line));
    out.lines.push_back(line.get_ref<const std::string&>().substr(0, kMostNameBytes));
  }
}

Json number_json(double number) {
  if (std::isnan(number)) return "nan";
  if (std::isinf(number)) return number > 0 ? "inf" : "-inf";
  if (number == 0 && std::signbit(number)) return "-0";
  return number;
}

}  // namespace

Expression read_expression(const Json& json) {
  if (!json.is_object()) refuse("expected a table of inputs, nodes and outputs, got {}", excerpt(json));
  for (const auto& [key, value] : json.items())
    if (key != "inputs" && key != "nodes" && key != "outputs" && key != "lines")
      refuse("expected inputs, nodes, outputs and lines, got '{}'", key.substr(0, kMostNameBytes));
  Expression out;
  std::set<std::string> names;
  for (const Json& input : list_of(json, "inputs", kMostInputs))
    out.inputs.push_back(read_input(input, out.inputs.size(), names));
  for (const Json& node : list_of(json, "nodes", kMostNodes))
    out.nodes.push_back(read_node(node, out.nodes.size(), out.inputs.size()));
  names.clear();
  for (const Json& output : list_of(json, "outputs", kMostOutputs)) {
    ExpressionOutput& added = out.outputs.emplace_back();
    added.name = name_of(output, "output", out.outputs.size() - 1, names);
    if (output.size() != 2 || !output.contains("node") || out.nodes.empty())
      refuse("output '{}': expected a name and a node", added.name);
    added.node = static_cast<int32_t>(index_in(output["node"], static_cast<int64_t>(out.nodes.size()),
                                               "output " + added.name + ": expected a node"));
  }
  if (out.outputs.empty()) refuse("expected at least one output, got none");
  read_lines(json, out);
  return out;
}

Json write_expression(const Expression& expression) {
  Json inputs = Json::array(), nodes = Json::array(), outputs = Json::array();
  for (const ExpressionInput& input : expression.inputs) {
    Json& added = inputs.emplace_back(Json{{"name", input.name}});
    if (input.scalar) added["scalar"] = true;
    if (!input.shape.is_flat()) added["shape"] = {input.shape.rows, input.shape.columns};
  }
  for (const Node& node : expression.nodes) {
    Json& added = nodes.emplace_back(Json::array({operation(node.op).name}));
    if (node.op == Op::kNumber) added.push_back(number_json(node.number));
    if (node.op == Op::kInput) added.push_back(node.input);
    for (int i = 0; i < operation(node.op).arguments; ++i)
      added.push_back(node.arguments[static_cast<size_t>(i)]);
    if (node.over != ReducedOver::kNothing)
      added.push_back(kReducedOverNames[static_cast<size_t>(node.over)]);
  }
  for (const ExpressionOutput& output : expression.outputs)
    outputs.push_back(Json{{"name", output.name}, {"node", output.node}});
  Json json = {{"inputs", inputs}, {"nodes", nodes}, {"outputs", outputs}};
  if (!expression.lines.empty()) json["lines"] = expression.lines;
  return json;
}

}  // namespace tycho
