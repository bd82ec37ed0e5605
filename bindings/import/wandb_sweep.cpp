// Sweeps of Weights & Biases as sweeps of Tycho: a YAML with method, metric and parameters.
#include "bindings/import/wandb_sweep.h"

#include <cmath>
#include <optional>
#include <set>

#include <fmt/ranges.h>

#include "bindings/import/lua_writer.h"
#include "trainer/base/error.h"

namespace tycho {
namespace {

constexpr std::string_view kLeftOut[] = {
    "project",    "entity", "description", "command", "controller", "job",     "image_uri",
    "parameters", "method", "metric",      "name",    "run_cap",    "program", "early_terminate"};

/// Usual names of metrics in W&B, and their names here.
constexpr std::pair<const char*, const char*> kMetrics[] = {
    {"val_loss", "eval.loss"},  {"val/loss", "eval.loss"},  {"validation_loss", "eval.loss"},
    {"eval_loss", "eval.loss"}, {"eval/loss", "eval.loss"}, {"train_loss", "loss"},
    {"train/loss", "loss"},     {"training_loss", "loss"}};

/// Returns a scalar or a list in the form of a command-line argument.
std::string argument_text(const DocNode& node) {
  if (node.is_scalar()) {
    const DocScalar scalar = read_scalar(node);
    return scalar.is(DocScalar::Kind::kNull) ? "null" : scalar.text;
  }
  std::vector<std::string> items;
  for (const DocNode& item : node.items) items.push_back(argument_text(item));
  return fmt::format("[{}]", fmt::join(items, ","));
}

class SweepWriter {
 public:
  SweepWriter(const DocNode& root, std::string text, std::string file)
      : root_(root), text_(std::move(text)), file_(std::move(file)) {}

  Imported finish(const std::string& stem) {
    add(fmt::format("-- Imported from {}, a sweep of Weights & Biases.", file_), {});
    add("local t = require \"tycho\"", {});
    add(fmt::format("local s = t.sweep {}", lua_quoted(sweep_name(stem))), {});
    write_program();
    write_metric();
    if (const DocNode* parameters = root_.find("parameters")) write_parameters(*parameters, "");
    write_search();
    for (const auto& [key, node] : root_.entries)
      if (std::find(std::begin(kLeftOut), std::end(kLeftOut), key) == std::end(kLeftOut))
        problem(node.key, fmt::format("{}: expected a key of a sweep of Weights & Biases", key));
    if (root_.find("early_terminate") != nullptr)
      note(*root_.find("early_terminate"),
           "early_terminate is left out, so every trial runs to its end; to stop poor ones:  s.search = "
           "t.search.asha { trials = 20, rungs = { \"100ba\", \"300ba\" } }");
    refuse_problems();
    add("return s", {});
    out_.lua = fmt::format("{}\n", fmt::join(lines_, "\n"));
    return std::move(out_);
  }

 private:
  void add(const std::string& line, const SourceLocation& place) {
    lines_.push_back(line);
    out_.places.push_back(place);
  }
  void problem(const SourceLocation& place, const std::string& text) {
    problems_.push_back({file_, place, text});
  }
  void note(const DocNode& node, const std::string& text) {
    out_.notes.push_back(fmt::format("line {}  {}", node.line, text));
  }

  void refuse_problems() const {
    if (problems_.empty()) return;
    const std::string report = problem_report(problems_, {{file_, text_}});
    throw RecipeError(
        fmt::format("{}{} of {} cannot be imported; nothing was started.", report,
                    problems_.size() == 1 ? "1 key" : fmt::format("{} keys", problems_.size()), file_),
        problem_list(problems_));
  }

  std::string text_of(const char* key) const {
    const DocNode* node = root_.at(key);
    return node == nullptr || !node->is_scalar() ? "" : read_scalar(*node).text;
  }

  std::string sweep_name(const std::string& stem) const {
    std::string name = text_of("name");
    if (name.empty()) return stem;
    for (char& c : name)
      if (std::isalnum(static_cast<unsigned char>(c)) == 0 && c != '.' && c != '_' && c != '-') c = '-';
    return std::isalnum(static_cast<unsigned char>(name[0])) == 0 ? stem : name;
  }

  void write_program() {
    const std::string program = text_of("program");
    if (program.ends_with(".lua") || is_foreign_recipe(program))
      return add(fmt::format("s.recipe = {}", lua_quoted(program)), root_.find("program")->place());
    if (!program.empty())
      note(*root_.find("program"),
           fmt::format("program: {} is no recipe: give one as an argument, recipe=FILE.lua", program));
  }

  void write_metric() {
    const DocNode* metric = root_.find("metric");
    if (metric == nullptr) return;
    std::string name = text_of("metric.name");
    for (const auto& [theirs, ours] : kMetrics) {
      if (name != theirs) continue;
      note(*metric, fmt::format("metric {} is {} here", theirs, ours));
      name = ours;
    }
    if (!name.empty())
      add(fmt::format("s.metric.name = {}", lua_quoted(name)), metric->find("name")->place());
    const std::string goal = text_of("metric.goal");
    if (!goal.empty() && goal != "minimize" && goal != "maximize")
      problem(metric->find("goal")->place(),
              fmt::format("goal: expected minimize or maximize, got {}", goal));
    if (goal == "maximize") add("s.metric.goal = \"max\"", metric->find("goal")->place());
  }

  void write_search() {
    const DocNode* method = root_.find("method");
    const std::string name = method == nullptr ? "" : text_of("method");
    const SourceLocation place = method == nullptr ? SourceLocation{} : method->place();
    if (name == "grid") return add("s.search = t.search.grid {}", place);
    if (name == "random")
      return add(fmt::format("s.search = t.search.random {{ trials = {} }}",
                             text_of("run_cap").empty() ? "t.arg(\"trials\", 20)" : text_of("run_cap")),
                 place);
    if (name == "bayes")
      return problem(
          place,
          "method: bayes is not supported; write  method: random,  or search=asha{...} of docs/sweeps.md");
    problem(place, fmt::format("method: expected grid or random, got {}", name.empty() ? "nothing" : name));
  }

  void write_parameters(const DocNode& map, const std::string& under) {
    if (!map.is_map() || map.entries.empty())
      return problem(map.place(), "parameters: expected names, each with values, value, or min and max");
    for (const auto& [name, node] : map.entries) {
      const std::string path = under.empty() ? name : under + "." + name;
      if (const DocNode* nested = node.find("parameters")) {
        write_parameters(*nested, path);
      } else if (const DocNode* value = node.find("value")) {
        add(fmt::format("s.pins[{}] = {}", lua_quoted(path), lua_quoted(argument_text(*value))), node.key);
      } else if (const DocNode* values = node.find("values")) {
        write_choice(path, node, *values);
      } else {
        write_distribution(path, node);
      }
    }
  }

  void write_choice(const std::string& path, const DocNode& node, const DocNode& values) {
    if (node.find("probabilities") != nullptr)
      return problem(node.find("probabilities")->place(), path + ": probabilities are not supported");
    if (!values.is_list() || values.items.empty())
      return problem(values.place(), path + ": values: expected a list");
    std::vector<std::string> items;
    for (const DocNode& item : values.items) items.push_back(lua_quoted(argument_text(item)));
    add(fmt::format("s.space[{}] = t.space.choice {{ {} }}", lua_quoted(path), fmt::join(items, ", ")),
        node.key);
  }

  /// Returns a number below a parameter, or nullopt after adding a problem.
  std::optional<std::string> number(const std::string& path, const DocNode& node, const char* key) {
    const DocNode* found = node.find(key);
    const DocScalar scalar = found == nullptr ? DocScalar{} : read_scalar(*found);
    if (scalar.is(DocScalar::Kind::kInteger) || scalar.is(DocScalar::Kind::kNumber)) return scalar.text;
    problem(found == nullptr ? node.key : found->place(),
            fmt::format("{}: expected a number as {}, got {}", path, key,
                        found == nullptr ? "nothing" : brief(*found)));
    return std::nullopt;
  }

  static std::string usual_distribution(const DocNode& node) {
    const auto is_whole = [&](const char* key) {
      return node.find(key) != nullptr && node.find(key)->is_scalar() &&
             read_scalar(*node.find(key)).is(DocScalar::Kind::kInteger);
    };
    return is_whole("min") && is_whole("max") ? "int_uniform" : "uniform";
  }

  void write_distribution(const std::string& path, const DocNode& node) {
    if (!node.is_map())
      return problem(node.place(),
                     fmt::format("{0}: expected value, values, or min and max, got {1}; write  {0}: "
                                 "{{value: {1}}}",
                                 path, brief(node)));
    const DocNode* given = node.find("distribution");
    const std::string kind = given == nullptr ? usual_distribution(node) : read_scalar(*given).text;
    const bool is_normal = kind == "normal";
    const bool is_stepped = kind == "q_uniform" || (kind == "int_uniform" && text_of("method") == "grid");
    const std::set<std::string> known = {"int_uniform",        "uniform", "q_uniform", "log_uniform",
                                         "log_uniform_values", "normal"};
    if (!known.contains(kind))
      return problem(
          given == nullptr ? node.key : given->place(),
          fmt::format("{}: distribution: expected one of {}, got {}", path, fmt::join(known, ", "), kind));
    std::optional<std::string> low = number(path, node, is_normal ? "mu" : "min");
    std::optional<std::string> high = number(path, node, is_normal ? "sigma" : "max");
    std::optional<std::string> step = node.find("q") == nullptr ? "1" : number(path, node, "q");
    if (!low || !high || !step) return;
    if (kind == "log_uniform") {  // its ends are exponents there
      low = fmt::format("{:.6g}", std::exp(std::stod(*low)));
      high = fmt::format("{:.6g}", std::exp(std::stod(*high)));
    }
    const char* ours = is_normal                 ? "normal"
                       : kind.starts_with("log") ? "log"
                       : kind == "int_uniform"   ? "int"
                                                 : "range";
    add(fmt::format("s.space[{}] = t.space.{}({}, {}{})", lua_quoted(path), ours, *low, *high,
                    is_stepped ? ", " + *step : ""),
        node.key);
  }

  const DocNode& root_;
  std::string text_, file_;
  std::vector<std::string> lines_;
  std::vector<SourceProblem> problems_;
  Imported out_;
};

}  // namespace

bool is_wandb_sweep(const DocNode& root) {
  return root.find("parameters") != nullptr && root.find("train_loader") == nullptr &&
         (root.find("method") != nullptr || root.find("program") != nullptr ||
          root.find("metric") != nullptr);
}

Imported import_wandb_sweep(const DocNode& root, const std::string& text, const std::string& file,
                            const std::string& stem) {
  return SweepWriter(root, text, file).finish(stem);
}

}  // namespace tycho
