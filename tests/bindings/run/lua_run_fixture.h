// A recipe in Lua, trained by the engine in this process: the callbacks of a real run are the recipe's own.
#pragma once
#include <fstream>
#include <memory>
#include <string>
#include <vector>

#include "bindings/define/recipe.h"
#include "bindings/run/lua_callbacks.h"
#include "tests/trainer/run/run_fixture.h"

namespace tycho {

class LuaRunTest : public RunTest {
 protected:
  LuaRunTest() {
    write_data(64, 16, 480);
    write_data(8, 16, 480, "val");
  }

  /// Makes config_ and its callbacks of a tiny recipe of two layers and twelve steps with these lines.
  void load(const std::string& lines) {
    std::ofstream(dir_ / "x.lua")
        << "local t = require \"tycho\"\nlocal r = t.recipe \"x\"\n"
        << "r.run_dir, r.threads, r.device = \"" << (dir_ / "run") << "\", 2, \"cpu\"\n"
        << "r.seq_len, r.global_batch, r.micro_batch, r.max_duration = 16, \"4sp\", \"2sp\", \"12ba\"\n"
        << "r.model = t.model.llama { width = 32, layers = 2, heads = 4, kv_heads = 2, ffn_width = 64,\n"
        << "  vocab_size = 512, max_seq_len = 64, tied = true }\n"
        << "r.optimizer = t.optim.adamw { lr = 1e-2 }\n"
        << "r.scheduler = t.sched.constant {}\n"
        << "r.tokenizer = \"" << TYCHO_GOLDEN_DIR << "/tokenizer/lines.json\"\n"
        << "r.train_data = t.data.mds { local_dir = \"" << (dir_ / "data") << "\" }\n"
        << "r.eval_data.val = t.data.mds { local_dir = \"" << (dir_ / "data") << "\", split = \"val\" }\n"
        << "r.eval.every = \"4ba\"\n"
        << lines << "\nreturn r\n";
    RecipeRequest request;
    request.file = dir_ / "x.lua";
    recipe_ = resolve_recipe(request);
    config_ = recipe_.config;
    source_ = std::make_unique<LuaCallbacks>(recipe_);
    callbacks_ = source_.get();
  }

  /// The points of a number of metrics.jsonl, by step.
  std::map<int64_t, double> curve(const std::string& name) const {
    std::map<int64_t, double> found;
    for (const Json& line : lines("metrics.jsonl"))
      if (line.contains(name)) found[line.at("step")] = line.at(name);
    return found;
  }
  std::vector<Json> events(const std::string& kind) const {
    std::vector<Json> found;
    for (const Json& line : lines("events.jsonl"))
      if (line.at("kind") == kind) found.push_back(line);
    return found;
  }

  ResolvedRecipe recipe_;
  std::unique_ptr<LuaCallbacks> source_;
};

}  // namespace tycho
