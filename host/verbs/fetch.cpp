// tycho fetch: files of the hub, and remote data of a recipe, to this machine.
#include <filesystem>

#include "host/data/preload.h"
#include "host/verb.h"
#include "trainer/base/json.h"
#include "trainer/hub/hub_files.h"
#include "trainer/recipe/hub_name.h"

namespace tycho {

const VerbSpec kFetchSpec = {
    "fetch hf://NAME ...\n"
    "       tycho fetch RECIPE [KEY=VALUE ...]",
    "Fetches repositories, folders or files of the Hugging Face hub into the cache of this machine, or all "
    "remote data "
    "of a recipe to where it says.",
    "  tycho fetch hf://datasets/OWNER/NAME/mds\n"
    "  tycho fetch hf://OWNER/NAME@v1.0/tokenizer.json\n"
    "  tycho fetch recipes/demo.lua",
    {{"split", "RECIPE: as for `tycho data preload`.", "NAME", ""},
     {"threads", "RECIPE: downloads at a time; 0 for 8.", "N", "0"},
     kJsonOption,
     kTraceOption}};

int run_fetch(const Arguments& arguments) {
  set_hub_access(HubAccess::kRefresh);
  if (!is_hub_name(word(arguments, 0, "a name such as hf://datasets/OWNER/NAME, or a recipe"))) {
    Arguments recipe = arguments;
    recipe.words.insert(recipe.words.begin(), "preload");
    recipe.numbers.insert(recipe.numbers.begin(), 0);
    return preload_data(recipe);
  }
  Json list = Json::array();
  for (const std::string& name : arguments.words) {
    const std::string path = local_path(parse_hub_name(name).text()), at_commit = pinned_name(name);
    list.push_back({{"name", at_commit}, {"path", path}});
    if (!arguments.has("json")) fmt::print("{}  {}\n", at_commit, path);
  }
  if (arguments.has("json")) fmt::print("{}\n", list.dump(2));
  return 0;
}

}  // namespace tycho
