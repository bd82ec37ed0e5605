// Turns declarations into ?help pages and into JSON for stubs and completion.
#include "bindings/run/class.h"

namespace tycho {
namespace {

const char* type_name(Arg::Kind kind) {
  switch (kind) {
    case Arg::Kind::kInteger: return "integer";
    case Arg::Kind::kNumber:
    case Arg::Kind::kAnyNumber: return "number";
    case Arg::Kind::kText: return "string";
    case Arg::Kind::kBoolean: return "boolean";
    case Arg::Kind::kDuration: return "tycho.Duration";
    case Arg::Kind::kTokens: return "string|integer[]";
    case Arg::Kind::kOptions: return "table";
    case Arg::Kind::kAny: return "any";
  }
  return "any";
}

std::string type_text(const Arg& arg) {
  if (arg.kind != Arg::Kind::kOptions) return type_name(arg.kind);
  std::string keys;
  for (const Arg& key : arg.keys)
    keys += fmt::format("{}{}?: {}", keys.empty() ? "" : ", ", key.name, type_name(key.kind));
  return keys.empty() ? "table" : "{ " + keys + " }";
}

std::string limits(const Arg& arg) {
  if (arg.low == -HUGE_VAL) return "";
  if (arg.high == HUGE_VAL) return fmt::format(" >= {}", arg.low);
  return fmt::format(" from {} to {}", arg.low, arg.high);
}

std::string args_help(const std::vector<Arg>& args, const std::string& indent) {
  std::string text;
  for (const Arg& arg : args) {
    text += fmt::format("{}{} : {}{}{}  {}\n", indent, arg.name, type_name(arg.kind), limits(arg),
                        arg.optional ? ", optional" : "", arg.doc);
    text += args_help(arg.keys, indent + "  ");
  }
  return text;
}

std::string method_head(const Class& object, const Method& method) {
  const std::string returns = method.returns[0] == '\0' ? "" : fmt::format(" : {}", method.returns);
  return fmt::format("{}:{}{}", object.name, signature(method), returns);
}

}  // namespace

std::string signature(const Method& method) {
  std::string args;
  for (const Arg& arg : method.args)
    args += fmt::format("{}{}{}: {}", args.empty() ? "" : ", ", arg.name, arg.optional ? "?" : "",
                        type_name(arg.kind));
  return fmt::format("{}({})", method.name, args);
}

std::string help_text(const Class& object) {
  std::string text = fmt::format("{}: {}\n", object.name, object.doc);
  for (const Field& field : object.fields)
    text += fmt::format("  .{} : {}  {}\n", field.name, field.type, field.doc);
  for (const Method& method : object.methods)
    text += fmt::format("  :{}  {}\n", signature(method), method.doc);
  return text;
}

std::string help_text(const Class& object, const std::string& member) {
  for (const Method& method : object.methods)
    if (member == method.name)
      return fmt::format("{}\n  {}\n{}", method_head(object, method), method.doc,
                         args_help(method.args, "  "));
  for (const Field& field : object.fields)
    if (member == field.name)
      return fmt::format("{}.{} : {}\n  {}\n", object.name, field.name, field.type, field.doc);
  return "";
}

Json describe(const std::vector<const Class*>& classes) {
  Json list = Json::array();
  for (const Class* one : classes) {
    Json fields = Json::array(), methods = Json::array();
    for (const Field& field : one->fields)
      fields.push_back({{"name", field.name}, {"type", field.type}, {"doc", field.doc}});
    for (const Method& method : one->methods) {
      Json args = Json::array();
      for (const Arg& arg : method.args)
        args.push_back(
            {{"name", arg.name}, {"type", type_text(arg)}, {"doc", arg.doc}, {"optional", arg.optional}});
      methods.push_back({{"name", method.name},
                         {"returns", method.returns},
                         {"doc", method.doc},
                         {"signature", signature(method)},
                         {"args", args}});
    }
    Json operators = Json::array();
    for (const Operator& op : one->operators)
      operators.push_back(std::string(op.event).substr(2));  // no "__"
    list.push_back({{"name", one->name},
                    {"doc", one->doc},
                    {"fields", fields},
                    {"methods", methods},
                    {"operators", operators},
                    {"iterates", one->iterate != nullptr}});
  }
  return list;
}

}  // namespace tycho
