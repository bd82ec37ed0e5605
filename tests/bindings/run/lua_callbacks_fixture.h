// Callbacks of a recipe in Lua over a session that only pretends.
#pragma once
#include <gtest/gtest.h>

#include <fstream>
#include <string>
#include <vector>

#include "bindings/run/lua_callbacks.h"
#include "tests/bindings/run/fake_session.h"
#include "tests/trainer/base/temp_dir.h"

namespace tycho {

class LuaCallbacksTest : public testing::Test {
 protected:
  /// Makes the callbacks of a recipe with these lines.
  void load(const std::string& lines) {
    std::ofstream(dir_ / "x.lua") << "local t = require \"tycho\"\nlocal r = t.recipe \"x\"\n"
                                     "r.model = t.model.llama {}\nr.optimizer = t.optim.adamw { lr = 1e-3 }\n"
                                     "r.max_duration = \"10ba\"\n"
                                     "r.train_data = t.data.mds { local_dir = \"d\" }\n"
                                  << lines << "\nreturn r\n";
    RecipeRequest request;
    request.file = dir_ / "x.lua";
    recipe_ = resolve_recipe(request);
    source_ = std::make_unique<LuaCallbacks>(recipe_);
    source_->set_session(&session_);
    callbacks_ = source_->callbacks();
  }
  /// Calls the first callback; what it raised, or "".
  std::string call(Event event = Event::kBatchEnd, const Json& facts = Json::object()) {
    CallbackPort port{commands_, &dist_};
    try {
      callbacks_.at(0).code->run({event, metrics_, run_, eval_, facts}, port);
      waited_s_ = port.waited_s;
    } catch (const Error& error) {
      std::string text = raised_ = error.what();
      const size_t at = text.find("x.lua:");
      return at == std::string::npos ? text : text.substr(at);
    }
    return "";
  }
  std::string value(const std::string& expression) {
    load("r.callbacks.a = t.control { state = { v = \"\" }, batch_end = function(ctx, st) st.v = tostring(" +
         expression + ") end }");
    const std::string raised = call();
    return raised.empty() ? callbacks_[0].code->state().at("v").get<std::string>() : raised;
  }

  struct OneRank final : Dist {
    int rank() const override { return 0; }
    int size() const override { return 2; }
    void enter() override {}
    void leave(bool) override {}
    bool told_of_failure() const override { return false; }
    std::vector<std::vector<double>> gather(const std::vector<double>& values,
                                            const std::string& place) override {
      last_place = place;
      std::vector<double> other = values;
      for (double& x : other) x += 1;
      return {values, other};
    }
    std::string last_place;
  };

  TempDir dir_;
  std::string raised_;   // by the newest call, whole
  double waited_s_ = 0;  // by the newest call, at prompts
  FakeSession session_;
  ResolvedRecipe recipe_;
  std::unique_ptr<LuaCallbacks> source_;
  std::vector<Callback> callbacks_;
  std::vector<Command> commands_;
  StepMetrics metrics_;
  RunInfo run_;
  const EvalRecords* eval_ = nullptr;
  OneRank dist_;
};

}  // namespace tycho
