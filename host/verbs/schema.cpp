// tycho schema: the keys of a recipe for editors and other tools.
#include "host/standard_streams.h"
#include "host/verb.h"
#include "trainer/recipe/config_io.h"
#include "trainer/recipe/json_schema.h"

namespace tycho {

const VerbSpec kSchemaSpec = {
    "schema",
    "Prints the JSON Schema of a resolved recipe, as recipe.json of a run and `config --resolved` have it.",
    "  tycho schema > tycho.schema.json\n"
    "  tycho config recipes/demo.lua --resolved > demo.json",
    {}};

int run_schema(const Arguments&) {
  print_exact_text();
  fmt::print("{}\n", json_schema(train_config_schema(), "Resolved recipe of Tycho").dump(2));
  return 0;
}

}  // namespace tycho
