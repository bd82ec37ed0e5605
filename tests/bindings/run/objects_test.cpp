// The objects of a session in Lua, over a session that computes nothing: what they read and do, what they
// refuse, how long they hold, and what becomes of their memory.
// long because: all of them share the session that computes nothing.
#include "bindings/run/objects.h"

#include <gtest/gtest.h>

#include "bindings/run/session_objects.h"
#include "tests/bindings/run/fake_session.h"
#include "tests/trainer/base/temp_dir.h"
#include "trainer/base/file_ops.h"

namespace tycho {
namespace {

class ObjectsTest : public testing::Test {
 protected:
  ObjectsTest() {
    objects_.attach(L());
    auto owned = std::make_unique<FakeSession>();
    owned->facts_.run.run_dir = dir_ / "run";
    fake_ = owned.get();
    open(std::move(owned), /*may_act=*/true);
  }

  void open(std::unique_ptr<TrainingSession> session, bool may_act) {
    ref_ = std::make_shared<SessionRef>();
    ref_->session = session.get();
    ref_->owned = std::move(session);
    ref_->scope = std::make_shared<Scope>("the session", may_act);
    push_session(L(), ref_);
    for (lua_pushnil(L()); lua_next(L(), -2) != 0;) lua_setglobal(L(), lua_tostring(L(), -2));
    lua_pop(L(), 1);
  }

  lua_State* L() { return state_->get(); }

  /// Runs a chunk; what it returns as text.
  std::string run(const std::string& chunk) {
    if (luaL_loadbuffer(L(), chunk.data(), chunk.size(), "@test.lua") != 0) return lua_tostring(L(), -1);
    call_lua(L(), 0, 1);
    lua_getglobal(L(), "tostring");
    lua_insert(L(), -2);
    call_lua(L(), 1, 1);
    const std::string text = lua_tostring(L(), -1);
    lua_pop(L(), 1);
    return text;
  }
  /// A member of the error that a chunk raises, or "no error".
  std::string error(const std::string& chunk, const std::string& member = "message") {
    return run("local ok, e = pcall(function() " + chunk +
               " end) if ok then return 'no error' end return type(e) == 'table' and e." + member + " or e");
  }

  TempDir dir_;
  Objects objects_;  // before the state: its finalisers come here
  std::unique_ptr<LuaState> state_ = std::make_unique<LuaState>();
  std::shared_ptr<SessionRef> ref_;
  FakeSession* fake_ = nullptr;
};

TEST_F(ObjectsTest, TrainsAndTellsWhatHappened) {
  EXPECT_EQ(run("return trainer.loss"), "nil");
  EXPECT_EQ(run("local s = trainer:step(4) return s.n .. ' ' .. s.loss .. ' ' .. s.losses[2]"), "4 0.25 0.5");
  EXPECT_EQ(run("return trainer.state.step + trainer.frac"), "4.4");
  EXPECT_EQ(run("return trainer.max_duration .. trainer.tokens"), "10ba256");
  EXPECT_EQ(run("return trainer:run('2ba')").substr(0, 24), "  6/10 ba  loss 0.1667  ");
  EXPECT_EQ(run("return trainer:eval().loss"), "2");
  EXPECT_EQ(run("local e = trainer:eval() return e.tokens .. ' ' .. e.seconds .. ' ' .. e.c4.loss .. ' ' .. "
                "e.code.loss"),
            "128 0.5 1 5");
  EXPECT_EQ(run("local e = trainer:eval 'code' return e.loss .. ' ' .. e.tokens .. ' ' .. tostring(e.code)"),
            "5 32 nil");
  EXPECT_EQ(run("return trainer:step(99).n"), "4");
  EXPECT_EQ(run("return trainer:step()"),
            "  10/10 ba  no step was run: the run has ended: max_duration is 10 steps; build it again with a "
            "longer one");
}

TEST_F(ObjectsTest, ReadsParametersInOrder) {
  EXPECT_EQ(
      run("local out = '' for name, p in model.params do out = out .. name .. ' ' .. p.shape[1] .. ' ' end "
          "return out"),
      "embed.weight 8 layers.0.weight 2 layers.1.weight 2 norm.weight 8 ");
  EXPECT_EQ(run("return #model.params + #model:layer(2)"), "5");
  EXPECT_EQ(run("return model:layer(1)[1].name .. model.params['norm.weight'].numel"), "layers.0.weight8");
  EXPECT_EQ(run("return model:find('embed').grad:max()"), "32");
  EXPECT_EQ(run("return select('#', model:find('layers'))"), "2");
  EXPECT_EQ(error("return model:layer(99)"), "model:layer(99): this model has layers 1..2");
  EXPECT_EQ(error("return model:layer(99)", "code"), "E_SHAPE");
  EXPECT_EQ(error("return model:find('embd.weight')"),
            "model:find: no parameter matches \"embd.weight\"; did you mean \"embed.weight\"?");
}

TEST_F(ObjectsTest, LooksAtTensors) {
  EXPECT_EQ(
      run("local w = model:find('layers.0.weight') return w:mean() .. ' ' .. w:max() .. ' ' .. #w:tolist()"),
      "4.5 8 2");
  EXPECT_EQ(run("return model:find('layers.0.weight'):slice(2, 3, 2):tolist()[2][1]"), "6");
  EXPECT_EQ(run("return model:find('embed'):rows(8):slice(4, 4, 2):item()"), "32");
  EXPECT_EQ(run("return model:find('layers.0.weight'):histogram(4).counts[1]"), "2");
  EXPECT_EQ(error("model:find('embed'):slice(7, 9)"),
            "tensor:slice: 7 to 9 is not inside dimension 1; this tensor is [8 x 4]");
  EXPECT_EQ(error("model:find('embed'):item()"), "tensor:item expects one number; this tensor is [8 x 4]");
  const std::string text = run("return model:find('embed')");
  EXPECT_NE(text.find("f32[8×4] cpu  mean 16.5  std 9.233  min 1  max 32  finite"), std::string::npos)
      << text;
  EXPECT_NE(text.find("(4 of 8 rows; (value):show(rows))"), std::string::npos) << text;
}

TEST_F(ObjectsTest, ATraceIsCopiedToANewFile) {
  const std::string to = dir_ / "mine.json";
  const std::string call = "profile:export('" + to + "')";
  EXPECT_EQ(error(call), "profile:export: no trace has been recorded yet");
  fake_->trace_ = dir_ / "trace.json";
  write_file_atomically(real_files(), fake_->trace_, "{}");
  EXPECT_EQ(run("return profile.state.path"), fake_->trace_);
  EXPECT_EQ(run("return " + call), to);
  EXPECT_EQ(read_file(to), "{}");
  EXPECT_EQ(error(call), "profile:export: " + to + " already exists");
  EXPECT_NE(error("profile:export('" + to + "/no/folder')").find("[profile] cannot write"),
            std::string::npos);
}

TEST_F(ObjectsTest, ProfileAndDataCommandTheRun) {
  run("profile:now{ active = '3ba' } profile:now() data:skip(2)");
  const std::vector<std::string>& events = fake_->events_;
  ASSERT_EQ(events.size(), 3u);
  EXPECT_EQ(events[0], "command: profile(3ba)");
  EXPECT_EQ(events[1], "command: profile()");
  EXPECT_EQ(events[2], "command: skip_batches(2)");
  EXPECT_EQ(run("return profile.state.phase"), "wait");
  EXPECT_EQ(run("return tostring(profile.state.path)"), "nil");
  EXPECT_EQ(error("data:skip(0)").substr(0, 10), "data:skip:");
  EXPECT_EQ(error("model:freeze('embed')"), "model:freeze: the recipe decides what a run trains");
}

TEST_F(ObjectsTest, WhatHasNoTextOfItsOwnSaysWhatItIsFor) {
  EXPECT_EQ(
      run("return log"),
      "log: Adds to the record of the run: events.jsonl, log.txt and the display.  ?log lists what it has");
}

TEST_F(ObjectsTest, OptimizerScheduleDataAndText) {
  EXPECT_EQ(run("return opt.kind .. opt.lr .. opt.betas[2] .. #opt.groups"), "adamw0.0010.952");
  EXPECT_EQ(run("return opt.ema.half_life .. tostring(opt.ema.evaluate)"), "5batrue");
  EXPECT_EQ(run("return sched:at(5) .. ' ' .. #sched:table(3)"), "0.0005 3");
  EXPECT_EQ(run("return #data:peek(3) .. data:decode(data:peek()[1])"), "3Hi");
  EXPECT_EQ(run("return model:generate('once', { max_tokens = 8 })"), "once and 8 more");
  EXPECT_EQ(run("return model:logits({ 3, 4 }):max()"), "4");
  EXPECT_EQ(run("return ckpt.last"), "nil");
  EXPECT_EQ(run("return #ckpt:list()"), "0");
  run("log:metric('x', 2) log:warn('hot', { degrees = 90 })");
  EXPECT_EQ(fake_->metrics, (std::vector<std::pair<std::string, double>>{{"x", 2.0}}));
  EXPECT_EQ(fake_->events_[0], R"(warning: hot  degrees=90 {"degrees":90,"step":0})");
  run("log:info('spike', { loss = 8.125, by = 'the guard', at = { 1, 2 } }) log:error 'alone'");
  EXPECT_EQ(fake_->events_[1].substr(0, 52), R"(info: spike  at=[1,2] by="the guard" loss=8.125 {"at)");
  EXPECT_EQ(fake_->events_[2], R"(error: alone {"step":0})");
  EXPECT_EQ(run("return mem.peak"), "2097152");
}

TEST_F(ObjectsTest, TensorsAreCalculatedWith) {
  run("w = model:find('layers.0.weight')");  // 1 to 8 in two rows
  EXPECT_EQ(run("return (w * 2):tolist()[2][4] + (2 * w):tolist()[1][1]"), "18");
  EXPECT_EQ(run("return ((w + w) - w):norm() == w:norm()"), "true");
  EXPECT_EQ(
      run("return (10 - w):min() .. ' ' .. (w / 2):max() .. ' ' .. (w ^ 2):max() .. ' ' .. (2 ^ w):max()"),
      "2 4 64 256");
  EXPECT_EQ(run("return (-w):max() .. ' ' .. (-w):abs():max() .. ' ' .. (w * w):sqrt():mean()"), "-1 8 4.5");
  EXPECT_EQ(run("return w:exp():log():max()"), "8");
  EXPECT_EQ(
      run("return w:gt(6):mean() .. w:ge(6):mean() .. w:lt(2):mean() .. w:le(2):mean() .. w:eq(3):mean() .. "
          "w:ne(3):mean()"),
      "0.250.3750.1250.250.1250.875");
  EXPECT_EQ(run("return tostring(w == w:keep()) .. tostring(w == w * 2) .. tostring(w == model:find 'norm')"),
            "truefalsefalse");
  EXPECT_EQ(run("return (w * 2).shape[2] .. tostring((w * 2).name)"), "4nil");
  EXPECT_EQ(run("return w:sum() .. ' ' .. w:sum(1)[4] .. ' ' .. w:mean(2)[2] .. ' ' .. w:min(1)[1] .. ' ' .. "
                "w:max(2)[1] .. ' ' .. w:argmax() .. ' ' .. w:argmax(1)[1]"),
            "36 12 6.5 1 4 8 2");
  EXPECT_EQ(run("local v, at = w:topk(2) return v[2][1] .. ' ' .. v[2][2] .. ' ' .. at[2][1] .. at[2][2]"),
            "8 7 43");
  EXPECT_EQ(run("local s = w:softmax() return s:sum(2)[1] .. ' ' .. s.shape[2] .. ' ' .. "
                "tostring(w:softmax(1):sum(1)[3] == 1)"),
            "1 4 true");
  EXPECT_EQ(run("local p = w:mm(w:transpose()) return p[1][1] .. ' ' .. p[1][2] .. ' ' .. p[2][2]"),
            "30 70 174");
  EXPECT_EQ(run("return w:transpose()[4][2] .. w:view(4, 2)[4][1] .. w:view(-1)[8] .. #w:view(2, -1, 2)[1]"),
            "8782");
  EXPECT_EQ(run("return #w[w:gt(5)] .. ' ' .. w[w:gt(5)]:sum() .. ' ' .. w[w:gt(2) * w:lt(5)]:sum()"),
            "3 21 7");
  EXPECT_EQ(error("return w:sum(3)"), "no dimension 3; this tensor is [2 x 4]");
  EXPECT_EQ(error("return w:view(3, -1)"),
            "tensor:view: 8 elements are not a multiple of 3; this tensor is [2 x 4]");
  EXPECT_EQ(error("return w:view(-1, -1)"), "tensor:view takes -1 once; this tensor is [2 x 4]");
  EXPECT_EQ(error("return w * 'x'"), "tensor * x: x expects a tensor or a number, got string");
  EXPECT_EQ(error("return w:gt {}"), "tensor: a comparison expects a tensor or a number, got table");
}

TEST_F(ObjectsTest, TensorsAreIndexedByPosition) {
  run("w = model:find('layers.0.weight')");
  EXPECT_EQ(run("return #w .. ' ' .. w[2][4] .. ' ' .. #w[1] .. ' ' .. w[1].shape[1] .. #w[1].shape"),
            "2 8 4 41");
  EXPECT_EQ(error("return w[0]"), "tensor[0]: positions are 1 to 2; this tensor is [2 x 4]");
  EXPECT_EQ(error("return w[3]"), "tensor[3]: positions are 1 to 2; this tensor is [2 x 4]");
  EXPECT_EQ(error("return w[1.5]"), "tensor[1.5]: positions are 1 to 2; this tensor is [2 x 4]");
  EXPECT_EQ(error("return w.shap"), "tensor has no shap; did you mean \"shape\"?");
}

TEST_F(ObjectsTest, ResultsAreCountedAndFreedLikeKeptTensors) {
  const int64_t before = objects_.external_bytes();
  run("w = model:find('layers.0.weight') kept = w * 2");
  EXPECT_EQ(objects_.external_bytes(), before + 32);
  run("also = kept[1]");  // a view
  EXPECT_EQ(objects_.external_bytes(), before + 32);
  for (int i = 0; i < 100; ++i) run("local x = (w + 1) * 2 - w:abs()");
  run("kept, also = nil, nil");
  objects_.collect(L());
  EXPECT_EQ(objects_.external_bytes(), before);
  run("kept = w * 2 trainer:close()");
  EXPECT_EQ(run("return (kept * 2):max()"), "32") << "it is Lua's own";
  EXPECT_EQ(error("return w * kept"), "this tensor belonged to the session, which has ended");
  EXPECT_EQ(error("return kept * w"), "this tensor belonged to the session, which has ended");
  EXPECT_EQ(error("return kept == w"), "this tensor belonged to the session, which has ended");
}

TEST_F(ObjectsTest, TensorsAreSavedForNumPy) {
  const std::string path = dir_ / "w.npy";
  run("w = model:find('layers.0.weight')");
  EXPECT_EQ(run("return w:save '" + path + "'"), path);
  EXPECT_EQ(read_file(path).substr(0, 6), "\x93NUMPY");
  EXPECT_EQ(error("w:save '" + path + "'").find("[tensor] " + path + " already exists"), 0u);
  EXPECT_EQ(error("w:save 'w.pt'"),
            "[tensor] expected a file that ends in .npy, which NumPy loads, got w.pt");
  ref_->writes_files = false;  // another rank
  EXPECT_EQ(run("return w:save '" + (dir_ / "other.npy") + "'"), dir_ / "other.npy");
  EXPECT_FALSE(std::filesystem::exists(dir_ / "other.npy"));
}

TEST_F(ObjectsTest, TheModelIsLookedIntoWithTokens) {
  EXPECT_EQ(run("return table.concat(model:generate({ 3, 4 }), ' ')"), "4 5");
  EXPECT_EQ(run("local l = model:logits({ 3, 4 }, { all = true }) return #l .. #l[1]"), "12");
  EXPECT_EQ(
      run("local a = model:activations({ 3, 4, 5 }) return #a .. ' ' .. a[3].shape[1] .. a[3].shape[2]"),
      "3 34");
  EXPECT_EQ(run("return #model:activations 'Hi'"), "3");
  EXPECT_EQ(run("local a = model:attention('Hi', 1) return #a .. ' ' .. a:sum(3)[1][2]"), "2 1");
  EXPECT_EQ(error("model:attention('Hi', 9)"), "[attention] no layer 9");
  EXPECT_EQ(run("return data:labels(2)[2][2] .. ' ' .. data:labels()[1][1]"), "-100 105");
  EXPECT_EQ(run("return data:show(1, 1)"),
            "sequence 1, 2 tokens\n      at     token     label  text\n       1        72       105  \n"
            "  ... 1 more\n");
  fake_->facts_.has_tokenizer = true;
  EXPECT_NE(run("return data:show()").find("       2       105         -  \"i\"\n"), std::string::npos);
}

TEST_F(ObjectsTest, ErrorsSayWhatToWrite) {
  EXPECT_EQ(error("return trainer.los"), "trainer has no los; did you mean \"loss\"?");
  EXPECT_EQ(error("trainer:stepp(1)"), "trainer has no stepp; did you mean \"step\"?");
  EXPECT_EQ(error("trainer.step(3)"), "trainer.step is called without its trainer");
  EXPECT_EQ(error("trainer.step(3)", "hint"), "write trainer:step(...), with a colon");
  EXPECT_EQ(error("trainer:step('x')"), "trainer:step: n expects a whole number of 1 or more, got \"x\"");
  EXPECT_EQ(error("trainer:step(1, 2)"), "trainer:step takes 1 argument, got 2");
  EXPECT_EQ(error("model:generate('x', { temprature = 1 })"),
            "model:generate: no option temprature; did you mean \"temperature\"?");
  EXPECT_EQ(
      error("trainer:run('soon')"),
      "trainer:run: duration expects a duration such as \"100ba\", \"2ep\" or \"1e6tok\", got \"soon\"");
  EXPECT_EQ(error("opt.lr = 3"), "opt is read-only: lr cannot be set");
  EXPECT_EQ(error("opt:set_lr(1)"), "opt:set_lr: opt is read-only");
  EXPECT_EQ(error("opt.x = 3", "where"), "test.lua:1");
}

TEST_F(ObjectsTest, AScopeThatOnlyReadsRefusesToAct) {
  open(std::make_unique<FakeSession>(), /*may_act=*/false);
  EXPECT_EQ(run("return trainer.state.step"), "0");
  EXPECT_EQ(error("trainer:step()"), "trainer:step changes the run, but the session is read-only");
  EXPECT_EQ(error("trainer:step()", "code"), "E_CONTEXT");
}

TEST_F(ObjectsTest, HandlesExpireWithTheirScopeAndKeptTensorsStay) {
  run("w = model:find('embed') kept = w:keep() all = model.params steps = trainer:step(2)");
  run("trainer:close()");
  for (const char* use : {"return trainer.loss", "w:mean()", "for _ in all do end", "return tostring(model)",
                          "trainer:step()", "return opt.lr", "return #all", "return w.grad"}) {
    EXPECT_EQ(error(use, "code"), "E_EXPIRED") << use;
  }
  EXPECT_NE(error("w:mean()").find("belonged to the session, which has ended"), std::string::npos);
  EXPECT_EQ(run("return kept:mean() + steps.n"), "18.5");
}

TEST_F(ObjectsTest, CountsTheBytesOfWhatLuaKeepsAndCollectsPastTheLimit) {
  objects_.set_limit(1000);
  run("for i = 1, 200 do local x = model:find('embed'):keep() end");  // 128 bytes each
  EXPECT_LE(objects_.external_bytes(), 1000 + 128);
  run("many = {} for i = 1, 50 do many[i] = model:find('embed'):keep() end");
  EXPECT_GE(objects_.external_bytes(), 50 * 128);
  run("many = nil");
  EXPECT_EQ(run("return mem:collect()"), "0");
}

TEST_F(ObjectsTest, KeptTensorsCountTowardTheMostThatLuaMayUse) {
  objects_.collect(L());
  const int64_t in_use = int64_t{lua_gc(L(), LUA_GCCOUNT, 0)} * 1024;
  objects_.set_most(in_use + (1 << 20), ", the limit of lua_memory");
  run("for i = 1, 100000 do local x = model:find('embed'):keep() end");  // 12.8 MB, and all of it garbage
  const std::string fills = "many = {} for i = 1, 1e6 do many[i] = model:find('embed'):keep() end";
  EXPECT_EQ(error(fills, "code"), "E_MEMORY");
  EXPECT_LE(objects_.external_bytes(), 1 << 20);
  run("many = nil");
  objects_.collect(L());
  const std::string message = error(fills);
  EXPECT_NE(message.find("MiB of tensors and other values of Lua"), std::string::npos) << message;
  EXPECT_NE(message.find("the limit of lua_memory"), std::string::npos) << message;
}

TEST_F(ObjectsTest, MakingAndDroppingLeaksNothing) {
  run("collectgarbage() ");
  const int64_t before = objects_.live_handles();
  run("for i = 1, 20000 do local a, b = model.params[1].grad, trainer:eval() end");
  objects_.collect(L());
  EXPECT_EQ(objects_.live_handles(), before);
}

TEST_F(ObjectsTest, AStateMayCloseUnderLiveHandles) {
  run("w = model:find('embed') kept = w:keep()");
  state_.reset();
  EXPECT_EQ(objects_.live_handles(), 0);
  EXPECT_EQ(objects_.external_bytes(), 0);
}

TEST_F(ObjectsTest, AnErrorInABodyRunsItsDestructors) {
  struct Probe {
    ~Probe() { ++count(); }
    static int& count() {
      static int value = 0;
      return value;
    }
  };
  static const Class object = {.name = "probe",
                               .doc = "",
                               .fields = {{"lua", "", "",
                                           [](Call& c) {
                                             const Probe probe;
                                             return luaL_error(c.L, "raised by Lua");
                                           }},
                                          {"cpp", "", "",
                                           [](Call&) -> int {
                                             const Probe probe;
                                             throw std::runtime_error("raised by C++");
                                           }}},
                               .methods = {}};
  objects_.push(L(), object, std::make_shared<int>(0), objects_.own());
  lua_setglobal(L(), "probe");
  EXPECT_NE(error("return probe.lua").find("raised by Lua"), std::string::npos);
  EXPECT_EQ(error("return probe.cpp", "cause"), "std::runtime_error: raised by C++");
  EXPECT_EQ(Probe::count(), 2);
}

// Every method of every class with every wrong kind of argument: an error object or a result, never anything
// else.
TEST_F(ObjectsTest, NoArgumentBreaksAMethod) {
  const char* objects[] = {"trainer", "model", "opt", "sched",   "data",
                           "ckpt",    "log",   "mem", "profile", "model:find('embed')"};
  const Class* classes[] = {&trainer_class(), &model_class(), &opt_class(), &sched_class(),
                            &data_class(),    &ckpt_class(),  &log_class(), &mem_class(),
                            &profile_class(), &tensor_class()};
  const char* values[] = {"nil",
                          "0/0",
                          "1/0",
                          "-1",
                          "1e300",
                          "2^53+2",
                          "''",
                          "'x'",
                          "true",
                          "{}",
                          "{1,'a'}",
                          "function() end",
                          "trainer",
                          "0.5",
                          "string.rep('a', 10000)",
                          "{max_tokens={}}"};
  int calls = 0;
  for (size_t i = 0; i < std::size(objects); ++i) {
    for (const Method& method : classes[i]->methods) {
      if (std::string(method.name) == "close" || std::string(method.name) == "stop") continue;
      for (const char* a : values) {
        for (const char* b : {"", ", 'x'", ", 0/0", ", {}, {}"}) {
          const std::string call = fmt::format("{}:{}({}{})", objects[i], method.name, a, b);
          const std::string code = error("return " + call, "code");
          EXPECT_TRUE(code == "no error" || code.starts_with("E_")) << call << ": " << code;
          ++calls;
        }
      }
    }
  }
  EXPECT_GT(calls, 2000);
}

TEST_F(ObjectsTest, HelpAndStubsComeFromTheDeclarations) {
  const std::string page = help_text(trainer_class());
  EXPECT_NE(page.find(":step(n?: integer)  Runs optimizer steps; evaluates and saves only"),
            std::string::npos)
      << page;
  EXPECT_NE(help_text(model_class(), "generate").find("temperature : number from 0 to 1000000, optional"),
            std::string::npos);
  EXPECT_EQ(help_text(model_class(), "nothing"), "");
  for (const Json& one : describe(session_classes())) {
    EXPECT_FALSE(one.at("doc").get<std::string>().empty()) << one.at("name");
    for (const Json& member : one.at("fields"))
      EXPECT_FALSE(member.at("doc").get<std::string>().empty()) << one.at("name") << member;
    for (const Json& member : one.at("methods"))
      EXPECT_FALSE(member.at("doc").get<std::string>().empty()) << one.at("name") << member;
  }
}

}  // namespace
}  // namespace tycho
