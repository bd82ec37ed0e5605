// Expressions as JSON, as Lua writes them and recipes and checkpoints keep them.
//   {"inputs": [{"name": "p"}, {"name": "h.lr", "scalar": true}, {"name": "s.v", "shape": [768, 1]}],
//    "nodes": [["input", 0], ["input", 1], ["number", 0.1], ["mul", 0, 2], ["sum", 3, "row"]],
//    "outputs": [{"name": "p", "node": 4}], "lines": ["x.lua:3", ...]}
#pragma once
#include "trainer/base/json.h"
#include "trainer/expression/expression.h"

namespace tycho {

/// Reads an expression; `lines` may be absent. Numbers that JSON lacks are "inf", "-inf", "nan" and "-0".
/// Throws Error (kRecipe) that names the part that is wrong: an unknown operation, a wrong number of
/// arguments, an argument that does not stand before its user, too many nodes. check_expression does the
/// rest.
Expression read_expression(const Json& json);

/// Writes an expression. Lines are left out when they are empty.
Json write_expression(const Expression& expression);

}  // namespace tycho
