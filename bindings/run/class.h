// One declaration per kind of Lua object: its fields and methods with types and help. Metatables, argument
// checks, ?help, stubs and completion derive from it.
#pragma once
#include <cmath>
#include <string>
#include <vector>

#include "bindings/define/lua_util.h"
#include "trainer/base/json.h"

namespace tycho {

class Call;
struct Class;

/// An argument of a method, or a key of a table of options.
struct Arg {
  enum class Kind { kInteger, kNumber, kAnyNumber, kText, kBoolean, kDuration, kTokens, kOptions, kAny };
  const char* name;
  Kind kind;
  const char* doc = "";
  bool optional = false;
  double low = -HUGE_VAL,
         high = HUGE_VAL;      // of a number; infinities and NaN are refused except for kAnyNumber
  std::vector<Arg> keys = {};  // of kOptions
};

/// Pushes results and returns their number. Throws on an error.
using Body = int (*)(Call& call);

struct Field {
  const char* name;
  const char* type;  // in the form of stubs: "integer", "tycho.run.Tensor"
  const char* doc;   // with its unit
  Body read;         // pushes one value
};

struct Method {
  const char* name;
  const char* returns;  // in the form of stubs, "" for nothing
  const char* doc;
  std::vector<Arg> args;
  Body call;
  bool acts = false;  // changes the run: refused in a read-only scope
};

/// An operator of Lua, "__add". Either operand may be the object; both are on the stack, at 1 and 2, in the
/// order written.
struct Operator {
  const char* event;
  Body apply;
};

struct Class {
  const char* name;  // "trainer"; also its name in messages
  const char* doc;   // one sentence
  std::vector<Field> fields;
  std::vector<Method> methods;
  Body text = nullptr;     // text of tostring; default: name and sentence
  Body index = nullptr;    // reads keys that are not members: argument 1 is the key; nil for an unknown name
  Body iterate = nullptr;  // `for k, v in object do`: argument 1 is the last key or nil
  Body length = nullptr;   // #object
  const char* hint = nullptr;  // added to the error for an unknown member
  std::vector<Operator> operators = {};
};

/// Returns "step(n?: integer)".
std::string signature(const Method& method);
/// Returns the help page of a class, or of one member; "" for an unknown name.
std::string help_text(const Class& object);
std::string help_text(const Class& object, const std::string& member);
/// Describes all classes for stubs and completion: [{name, doc, fields: [{name, type, doc}], methods: [...],
/// operators: ["add"]}].
Json describe(const std::vector<const Class*>& classes);

}  // namespace tycho
