// Runs statements. Each turn of a loop has its own scope, as in Jinja.
#include "trainer/data/templates/template.h"

#include <algorithm>
#include <memory>

#include "trainer/data/templates/python_text.h"
#include "trainer/data/templates/template_parser.h"

namespace tycho::jinja {
namespace {

class Renderer {
 public:
  Renderer(std::string place, std::optional<Date> date)
      : rendering_{.place = std::move(place)}, date_(date) {}

  std::string render(const std::vector<Statement>& body,
                     const std::vector<std::pair<std::string, Value>>& names) {
    scopes_.set("raise_exception", Value::Data(Function::kRaiseException));
    scopes_.set("range", Value::Data(Function::kRange));
    scopes_.set("namespace", Value::Data(Function::kNamespace));
    scopes_.set("dict", Value::Data(Function::kDict));
    if (date_) scopes_.set("strftime_now", Value::Data(Function::kStrftimeNow));
    for (const auto& [name, value] : names) scopes_.set(name, value);
    scopes_.open();
    run(body);
    return std::move(out_);
  }

 private:
  enum class Flow { kOn, kBreak, kContinue };

  Flow run(const std::vector<Statement>& body) {
    const CallDepth depth(rendering_);
    for (const Statement& statement : body) {
      rendering_.line = statement.line;
      rendering_.charge(kStepEffort);
      if (const Flow flow = run_one(statement); flow != Flow::kOn) return flow;
    }
    return Flow::kOn;
  }

  Flow run_one(const Statement& statement) {
    switch (statement.kind) {
      case StatementKind::kText: print(statement.text); break;
      case StatementKind::kPrint: print(printed(evaluator_.evaluate(*statement.expr), rendering_)); break;
      case StatementKind::kIf:
        for (const Statement& branch : statement.body)
          if (truth(evaluator_.evaluate(*branch.expr))) return run(branch.body);
        return run(statement.otherwise);
      case StatementKind::kFor: run_for(statement); break;
      case StatementKind::kSet: assign(statement, evaluator_.evaluate(*statement.expr)); break;
      case StatementKind::kSetBlock: run_set_block(statement); break;
      case StatementKind::kMacro: scopes_.set(statement.text, Value::Data(&statement)); break;
      case StatementKind::kBody:
        scopes_.open();
        run(statement.body);
        scopes_.close();
        break;
      case StatementKind::kBreak: return Flow::kBreak;
      case StatementKind::kContinue: return Flow::kContinue;
      case StatementKind::kBranch: break;  // is run by its kIf
    }
    return Flow::kOn;
  }

  void print(std::string_view text) {
    rendering_.charge(std::ssize(text));
    out_ += text;
  }

  void run_for(const Statement& statement) {
    std::vector<Value> items = items_of(evaluator_.evaluate(*statement.expr), rendering_);
    if (statement.filter) {
      std::vector<Value> kept;
      for (Value& item : items) {
        scopes_.open();
        unpack(statement, item);
        if (truth(evaluator_.evaluate(*statement.filter))) kept.push_back(std::move(item));
        scopes_.close();
      }
      items = std::move(kept);
    }
    const std::shared_ptr<Loop> loop = make_loop(std::move(items), rendering_);
    bool any = false;
    for (; loop->index < loop->items.size(); ++loop->index) {
      any = true;
      rendering_.charge(kStepEffort);
      scopes_.open();
      scopes_.set("loop", Value::Data(loop));
      unpack(statement, loop->items[loop->index]);
      const Flow flow = run(statement.body);
      scopes_.close();
      if (flow == Flow::kBreak) break;
    }
    if (any) return;
    scopes_.open();
    run(statement.otherwise);
    scopes_.close();
  }

  void unpack(const Statement& statement, const Value& value) {
    if (!statement.unpacks) return scopes_.set(statement.targets[0], value);
    const std::vector<Value> items = items_of(value, rendering_);
    if (items.size() != statement.targets.size())
      rendering_.wrong("expected {} values for {}, got {}", statement.targets.size(),
                       fmt::join(statement.targets, ", "), items.size());
    for (size_t i = 0; i < items.size(); ++i) scopes_.set(statement.targets[i], items[i]);
  }

  void assign(const Statement& statement, const Value& value) {
    rendering_.line = statement.line;
    if (statement.member.empty()) return unpack(statement, value);
    const Value target = scopes_.find(statement.targets[0]);
    if (!target.is<Namespace*>())
      rendering_.wrong("{} is not a namespace: only those have members to set", statement.targets[0]);
    auto& members = target.as<Namespace*>()->members;
    const auto found = std::find_if(members.begin(), members.end(),
                                    [&](const auto& member) { return member.first == statement.member; });
    if (found == members.end()) {
      members.emplace_back(statement.member, value);
    } else {
      found->second = value;
    }
  }

  /// Returns the output of `body`, run in its own scope.
  std::string captured(const std::vector<Statement>& body) {
    std::string outer;
    std::swap(outer, out_);
    scopes_.open();
    run(body);
    scopes_.close();
    std::swap(outer, out_);
    return outer;
  }

  void run_set_block(const Statement& statement) {
    Value value = make_text(captured(statement.body), rendering_);
    if (statement.expr) value = evaluator_.evaluate_on(*statement.expr, value);
    assign(statement, value);
  }

  Value call_macro(const Statement& macro, const Arguments& arguments) {
    if (arguments.values.size() > macro.targets.size())
      rendering_.wrong("the macro {} takes at most {} arguments, got {}", macro.text, macro.targets.size(),
                       arguments.values.size());
    std::vector<Scopes::Scope> inner = scopes_.hide_inner();
    scopes_.open();
    const size_t num_required = macro.targets.size() - macro.defaults.size();
    for (size_t i = 0; i < macro.targets.size(); ++i) {
      const std::string& name = macro.targets[i];
      const auto named = std::find_if(arguments.named.begin(), arguments.named.end(),
                                      [&](const auto& argument) { return argument.first == name; });
      if (i < arguments.values.size()) {
        scopes_.set(name, arguments.values[i]);
      } else if (named != arguments.named.end()) {
        scopes_.set(name, named->second);
      } else {
        scopes_.set(name, i < num_required ? Value::undefined("'" + name + "'")
                                           : evaluator_.evaluate(*macro.defaults[i - num_required]));
      }
    }
    for (const auto& [name, value] : arguments.named)
      if (std::find(macro.targets.begin(), macro.targets.end(), name) == macro.targets.end())
        rendering_.wrong("the macro {} has no parameter {}", macro.text, name);
    std::string text = captured(macro.body);
    scopes_.restore(std::move(inner));
    return make_text(std::move(text), rendering_);
  }

  Rendering rendering_;
  std::optional<Date> date_;
  Scopes scopes_;
  std::string out_;
  ExpressionEvaluator evaluator_{
      scopes_, date_,
      [this](const Statement& macro, const Arguments& arguments) { return call_macro(macro, arguments); },
      rendering_};
};

}  // namespace

Template::Template(std::string_view source, std::string place) : place_(std::move(place)) {
  Rendering rendering{.place = place_};
  body_ = parse_template(source, rendering);
}

std::string Template::render(const std::vector<std::pair<std::string, Value>>& names,
                             std::optional<Date> date) const {
  return Renderer(place_, date).render(body_, names);
}

}  // namespace tycho::jinja
