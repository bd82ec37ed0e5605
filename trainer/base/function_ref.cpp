// The JSON of a recipe's function.
#include "trainer/base/function_ref.h"

namespace tycho {

bool is_function_ref(const Json& json) {
  return json.is_object() && json.size() == 2 && json.contains("at") && json.contains("hash");
}

}  // namespace tycho
