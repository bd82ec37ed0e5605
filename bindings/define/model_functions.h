// The part of tycho.native about models that others have published: folders of Hugging Face, presets.
#pragma once
#include <lua.hpp>
#include <string>

#include "trainer/base/json.h"

namespace tycho {

/// Adds hf_model, pinned_name, parameters, preset and tokenizer_beside to the table on top of the stack.
void add_model_functions(lua_State* L);

/// Pushes nil and a message without its "[place] "; returns the number of results, 2.
int push_refusal(lua_State* L, const std::string& message);

/// Returns the schema of recipes, in which kinds of models have the names of their presets.
Json schema_with_presets();

}  // namespace tycho
