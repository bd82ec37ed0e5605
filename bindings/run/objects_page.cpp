// The page of all objects of a run: docs/objects.md, which `tycho types --markdown` writes.
#include "bindings/run/objects_page.h"

#include <set>

namespace tycho {
namespace {

constexpr const char* kHead = R"(# Objects of a run

Written by `tycho types --markdown` from the declarations that check their use; do not edit. At a prompt, `?trainer` and
`?trainer.step` show the same, and Tab completes.

| where | what there is |
|---|---|
| the [REPL](repl.md) after `build(r)` | `trainer`, `model`, `opt`, `sched`, `data`, `ckpt`, `log`, `mem`, `profile`, `cmd` |
| a [callback](callbacks.md) | `ctx`, which has the same except `trainer`: `ctx.model`, `ctx.log`; `ctx.cmd` in `t.control`, `ctx.dist` in `t.everywhere` |
| [`tycho attach`](attach.md) | `ctx`, and its objects as separate names; `cmd` with `--control` |

Methods are called with a colon, `model:find "embed"`; commands with a dot, `cmd.set_lr(3e-4)`. A `?` after a type means that it may be nil. Objects
are valid while the run is open, in a callback until the function returns.
)";

/// Escapes characters that would begin a column or a tag.
std::string cell(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '|') out += "\\|";
    if (c == '<') out += "&lt;";
    if (c != '|' && c != '<') out += c;
  }
  return out;
}

/// Returns "tycho.run.Tensor[]" as "tensor[]", in the names of this page.
std::string short_type(std::string type) {
  constexpr std::string_view kPrefix = "tycho.run.";
  for (size_t at; (at = type.find(kPrefix)) != std::string::npos;) {
    type.erase(at, kPrefix.size());
    type[at] = static_cast<char>(std::tolower(static_cast<unsigned char>(type[at])));
  }
  return type;
}

std::string arguments_text(const std::vector<Arg>& args) {
  std::string text;
  for (const Arg& arg : args) {
    if (arg.doc[0] != '\0') text += fmt::format(" `{}`: {}", arg.name, arg.doc);
    text += arguments_text(arg.keys);
  }
  return text;
}

std::string fields_table(const Class& object, const std::set<std::string>& known) {
  std::string rows;
  for (const Field& field : object.fields)
    if (!known.contains(field.name))
      rows += fmt::format("| `.{}` | {} | {} |\n", field.name, cell(short_type(field.type)), cell(field.doc));
  return rows.empty() ? "" : "\n| field | type | meaning |\n|---|---|---|\n" + rows;
}

std::string methods_table(const Class& object) {
  std::string rows;
  for (const Method& method : object.methods)
    rows += fmt::format("| `:{}` | {} | {} |\n", cell(signature(method)), cell(short_type(method.returns)),
                        cell(std::string(method.doc) + arguments_text(method.args)));
  return rows.empty() ? "" : "\n| method | returns | meaning |\n|---|---|---|\n" + rows;
}

}  // namespace

std::string objects_page(const std::vector<const Class*>& classes) {
  std::string page = kHead;
  const Class* first_ctx = nullptr;
  for (const Class* one : classes) {
    page += fmt::format("\n## {}\n\n{}", one->name, one->doc);
    std::set<std::string> known;
    if (std::string_view(one->name).ends_with("_ctx")) {  // the kinds of ctx are alike but for what is said
      if (first_ctx != nullptr) {
        page += fmt::format(" It has everything that `{}` has, and:", first_ctx->name);
        for (const Field& field : first_ctx->fields) known.insert(field.name);
      }
      first_ctx = first_ctx == nullptr ? one : first_ctx;
    }
    page += "\n" + fields_table(*one, known) + methods_table(*one);
  }
  return page;
}

}  // namespace tycho
