// Callbacks in Lua, called as the engine calls them.
#include "bindings/run/lua_callbacks.h"

#include <gtest/gtest.h>

#include <atomic>
#include <thread>

#include "bindings/define/watch.h"
#include "tests/bindings/run/lua_callbacks_fixture.h"

namespace tycho {
namespace {

TEST_F(LuaCallbacksTest, TheContextHasTheNumbersOfTheStep) {
  metrics_.step = 7, metrics_.loss = 2.5, metrics_.step_s = 0.25;
  run_.total_steps = 14;
  EXPECT_EQ(value("ctx.step .. \" \" .. ctx.loss .. \" \" .. ctx.step_ms .. \" \" .. ctx.frac"),
            "7 2.5 250 0.5");
  EXPECT_EQ(value("ctx.event"), "batch_end");
  EXPECT_EQ(value("ctx.mfu"), "nil");
}

TEST_F(LuaCallbacksTest, AWrongNameIsAnErrorWithItsLineAndASuggestion) {
  const std::string message = value("ctx.los");
  EXPECT_TRUE(message.starts_with("x.lua:7: control_ctx has no los; did you mean ")) << message;
  EXPECT_NE(message.find("\"loss\""), std::string::npos);
}

TEST_F(LuaCallbacksTest, AMissingFieldOfStateIsNamedWithThoseThatAreThere) {
  const auto said = [&](const std::string& line) {
    load(
        "local limits = { low = 1 }\nr.callbacks.a = t.control { state = { hits = 0, deep = { best = 1 } },\n"
        "batch_end = function(ctx, st)\n" +
        line + "\nend }");
    return call();
  };
  metrics_.loss = 1;
  EXPECT_EQ(
      said("st.hits = st.hist + 1"),
      "x.lua:10: attempt to perform arithmetic on field 'hist' (a nil value); st has no hist; did you mean "
      " st.hits?");
  EXPECT_NE(said("if ctx.loss < st.bset then st.hits = 1 end").find("st has no bset; it has deep, hits"),
            std::string::npos);
  EXPECT_NE(said("local x = ctx.loss > st.deep.bets").find("did you mean  st.deep.best?"), std::string::npos);
  EXPECT_NE(said("st.hits = math.min(limits.hig, 1)").find("limits has no hig; it has low"),
            std::string::npos);
  EXPECT_NE(said("st.hits = #st.names").find("st has no names"), std::string::npos);
  EXPECT_EQ(said("st.more = (st.more or 0) + 1"), "") << "a state may grow";
  EXPECT_EQ(said("local x\nst.hits = x + 1"),
            "x.lua:11: attempt to perform arithmetic on local 'x' (a nil value)");
}

TEST_F(LuaCallbacksTest, ObserversHaveNoCommands) {
  load("r.callbacks.a = t.observe { batch_end = function(ctx) ctx.cmd.stop() end }");
  EXPECT_NE(call().find("x.lua:7: ctx.cmd: only a t.control callback can issue commands"), std::string::npos);
}

TEST_F(LuaCallbacksTest, ControllersHaveEveryCommand) {
  std::string code;
  for (const CommandSpec& spec : all_commands()) code += fmt::format(" local f = ctx.cmd.{}", spec.name);
  load("r.callbacks.a = t.control { batch_end = function(ctx)" + code + " end }");
  EXPECT_EQ(call(), "");
}

TEST_F(LuaCallbacksTest, CommandsAreCheckedWhereTheyAreWritten) {
  load(
      "r.callbacks.a = t.control { batch_end = function(ctx)\n"
      "  ctx.cmd.scale_lr(0.5, { for_next = \"200ba\" })\n"
      "  ctx.cmd.save \"spike\"\n"
      "  ctx.cmd.set_schedule(t.sched.linear { alpha_f = 0.5 })\nend }");
  EXPECT_EQ(call(), "");
  ASSERT_EQ(commands_.size(), 3u);
  EXPECT_EQ(command_text(commands_[0]), "scale_lr(0.5, for_next = 200ba)");
  EXPECT_EQ(command_text(commands_[1]), "save(\"spike\")");
  EXPECT_EQ(commands_[2].arguments.at("scheduler").at("alpha_f"), 0.5);
  load("r.callbacks.a = t.control { batch_end = function(ctx) ctx.cmd.scale_lrr(1) end }");
  EXPECT_NE(call().find("did you mean \"scale_lr\""), std::string::npos);
  load("r.callbacks.a = t.control { batch_end = function(ctx) ctx.cmd.set_lr(-1) end }");
  EXPECT_NE(call().find("x.lua:7"), std::string::npos);
  load("r.callbacks.a = t.control { batch_end = function(ctx) ctx.cmd.save(\"a/b\") end }");
  EXPECT_EQ(call(), "x.lua:7: [cmd.save] tag = \"a/b\": expected a name without \"/\"");
}

TEST_F(LuaCallbacksTest, OnOtherRanksAnObserverRecordsAndACallbackOfAllRanksDoesNot) {
  session_.facts_.rank = 1;
  for (const auto& [kind, records] : {std::pair("observe", 1), {"everywhere", 0}}) {
    session_.metrics.clear(), session_.events_.clear();
    load(std::string("r.callbacks.a = t.") + kind +
         " { batch_end = function(ctx) ctx.log:metric(\"m\", 1) ctx.log:warn \"w\" end }");
    EXPECT_EQ(call(), "");
    EXPECT_EQ(session_.metrics.size(), records);
    EXPECT_EQ(session_.events_.size(), records);
  }
}

TEST_F(LuaCallbacksTest, AnObserverSaysWhereItRuns) {
  load("r.callbacks.a = t.observe { ranks = \"local_zero\", batch_end = function() end }");
  EXPECT_EQ(callbacks_.at(0).ranks, ObserveRanks::kLocalZero);
  load("r.callbacks.a = t.observe { batch_end = function() end }");
  EXPECT_EQ(callbacks_.at(0).ranks, ObserveRanks::kZero);
}

TEST_F(LuaCallbacksTest, WhatRaisesLeavesItsStateAsItWas) {
  load(
      "r.callbacks.a = t.control { state = { n = 1, deep = { 2 } }, batch_end = function(ctx, st)\n"
      "  st.n = 5; st.deep[1] = 6\n  error(\"oh\")\nend }");
  EXPECT_EQ(call(), "x.lua:9: oh");
  EXPECT_EQ(callbacks_[0].code->state(), (Json{{"deep", {2}}, {"n", 1}}));
}

TEST_F(LuaCallbacksTest, WhatRaisesLeavesWhatTheCallBeforeItMade) {
  load(
      "r.callbacks.a = t.control { state = { n = 0, deep = { 2 } }, batch_end = function(ctx, st)\n"
      "  st.n = st.n + 1\n"
      "  if st.n == 2 then st.deep[1], st.text = 3, \"x\" end\n"
      "  if st.n == 3 then st.deep[2], st.text = 4, nil end\n"
      "  if st.n == 4 then st.deep = { a = { true } } end\n"
      "  if st.n == 5 then st.deep.a[1], st.n = \"spoilt\", 9; error(\"oh\") end\nend }");
  for (int i = 0; i < 4; ++i) ASSERT_EQ(call(), "");
  const Json fourth = {{"deep", {{"a", {true}}}}, {"n", 4}};
  EXPECT_EQ(callbacks_[0].code->state(), fourth);
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(call(), "x.lua:12: oh");
    EXPECT_EQ(callbacks_[0].code->state(), fourth);
  }
}

TEST_F(LuaCallbacksTest, WhatACallThatFailedSawCanBeLookedAtOnce) {
  load(
      "local function inner(x) local twice, f = 2 * x, print; error(\"oh\") end\n"
      "r.callbacks.a = t.control { state = { n = 1 }, batch_end = function(ctx, st)\n"
      "  st.n = st.n + 1\n  inner(ctx.loss)\n  return 1\nend }");
  metrics_.loss = 1.5;
  EXPECT_TRUE(source_->take_failure().is_null());
  EXPECT_EQ(call(), "x.lua:7: oh");
  const Json failure = source_->take_failure();
  ASSERT_EQ(failure.at("frames").size(), 2u);
  const Json &inner = failure.at("frames")[0], &outer = failure.at("frames")[1];
  EXPECT_EQ(inner.at("line"), 7);
  EXPECT_EQ(inner.at("locals")[1], (Json{{"name", "twice"}, {"text", "3"}, {"value", 3}}));
  EXPECT_EQ(inner.at("locals")[2], (Json{{"name", "f"}, {"text", "function"}}));
  EXPECT_EQ(outer.at("line"), 10);
  EXPECT_EQ(outer.at("locals")[1].at("value"), (Json{{"n", 2}}));
  EXPECT_EQ(failure.at("ctx").at("loss"), 1.5);
  EXPECT_TRUE(source_->take_failure().is_null());
}

TEST_F(LuaCallbacksTest, ACallThatLeavesWhatNoCheckpointHoldsFailsAndIsUndone) {
  const std::map<std::string, std::string> bad = {
      {"st.f = function() end", "a function at f"},
      {"st.n = math.huge", "a number that is not finite at n"},
      {"st.deep.x = 0/0", "a number that is not finite at deep.x"},
      {"st.me = st", "tables more than 16 deep at me"},
      {"st.text = \"\\255\"", "text that is not UTF-8 at text"},
      {"st.text = \"b\"; st.deep.x = ctx", "a userdata at deep.x"}};
  for (const auto& [code, found] : bad) {
    load(
        "r.callbacks.a = t.control { state = { n = 1, text = \"a\", deep = { x = 2 } },\n"
        "  batch_end = function(ctx, st) st.n = st.n + 1; if st.n == 3 then " +
        code + "; ctx.cmd.stop() end end }");
    EXPECT_EQ(call(), "");
    const Json after_one = {{"deep", {{"x", 2}}}, {"n", 2}, {"text", "a"}};
    const std::string message = call();
    EXPECT_TRUE(message.starts_with("x.lua:8: state must be plain data; this call left " + found)) << message;
    EXPECT_EQ(callbacks_[0].code->state(), after_one) << code;
    callbacks_[0].code->set_state({{"deep", {{"x", 2}}}, {"n", 5}, {"text", "a"}});
    EXPECT_EQ(call(), "");
    EXPECT_EQ(callbacks_[0].code->state().at("n"), 6);
  }
}

TEST_F(LuaCallbacksTest, RaisedErrorsAreReportedAsText) {
  load("r.callbacks.a = t.control { batch_end = function() coroutine.yield() end }");
  EXPECT_TRUE(call().find("coroutine.yield returns to coroutine.resume, but nothing resumed this") !=
              std::string::npos)
      << raised_;
  load("r.callbacks.a = t.control { batch_end = function() error { 3 } end }");
  EXPECT_NE(call().find("error was called with  { 3 }"), std::string::npos) << raised_;
  load("r.callbacks.a = t.control { batch_end = function() t.fail(\"E_MINE\", \"%d left\", 3) end }");
  EXPECT_EQ(call(), "x.lua:7: E_MINE  3 left");
}

TEST_F(LuaCallbacksTest, HandlesExpireWithTheCall) {
  load(
      "local kept\nr.callbacks.a = t.observe { batch_end = function(ctx)\n"
      "  if kept then return kept.loss end\n  kept = ctx\nend }");
  EXPECT_EQ(call(), "");
  EXPECT_NE(call().find("this observe_ctx belonged to batch_end of \"a\", which has ended"),
            std::string::npos);
  load(
      "local cmd\nr.callbacks.a = t.control { batch_end = function(ctx)\n"
      "  if cmd then cmd(0.5) end\n  cmd = ctx.cmd.set_lr\nend }");
  EXPECT_EQ(call(), "");
  EXPECT_NE(call().find("has ended"), std::string::npos);
}

TEST_F(LuaCallbacksTest, AnEndlessLoopEndsByItsLimitAndByCtrlC) {
  load("r.callbacks.a = t.observe { time_limit = \"0.2s\", batch_end = function() while true do end end }");
  EXPECT_NE(call().find("is there an endless loop?"), std::string::npos);
  load(
      "r.callbacks.a = t.observe { time_limit = \"0.2s\", batch_end = function()\n"
      "  return ((\"a\"):rep(30000):find((\".-\"):rep(20) .. \"b\"))\nend }");
  EXPECT_TRUE(call().starts_with("x.lua:8: stopped after")) << raised_;
  load(
      "r.callbacks.a = t.observe { time_limit = \"0.2s\", batch_end = function()\n"
      "  return (\"a\"):rep(30000):find((\".-\"):rep(20) .. \"b\")  -- a tail call\nend }");
  EXPECT_TRUE(call().starts_with("x.lua:7: stopped after")) << raised_;
  load(
      "r.callbacks.a = t.observe { batch_end = function() while true do pcall(function() while true do end "
      "end) end end }");
  std::atomic<bool> ended = false;
  std::thread presses([&] {  // again and again: nobody knows when the callback has begun
    for (; !ended; std::this_thread::sleep_for(std::chrono::milliseconds(20))) LuaWatch::interrupt();
  });
  EXPECT_NE(call(), "");
  ended = true;
  presses.join();
  EXPECT_NE(raised_.find("interrupted at"), std::string::npos) << raised_;
}

TEST_F(LuaCallbacksTest, RandomNumbersAreTheSameWhenAStepIsRunAgain) {
  load("r.callbacks.a = t.observe { state = {}, batch_end = function(ctx, st) st.x = math.random() end }");
  metrics_.step = 3;
  call();
  const Json first = callbacks_[0].code->state();
  metrics_.step = 4;
  call();
  EXPECT_NE(callbacks_[0].code->state(), first);
  metrics_.step = 3;
  call();
  EXPECT_EQ(callbacks_[0].code->state(), first);
}

TEST_F(LuaCallbacksTest, TheRecipeCanBeReadAndNotWritten) {
  EXPECT_EQ(value("r.optimizer.lr"), "0.001");
  load("r.callbacks.a = t.observe { batch_end = function() r.seed = 3 end }");
  EXPECT_NE(call().find("training has started"), std::string::npos);
}

TEST_F(LuaCallbacksTest, EverywhereCallbacksReduceNumbersAndTables) {
  load(
      "r.callbacks.a = t.everywhere { state = {}, batch_end = function(ctx, st)\n"
      "  st.sum = ctx.dist:sum(3)\n  st.max = ctx.dist:max({ a = 1, b = 2 })\n"
      "  st.all = ctx.dist:gather(5)\n  st.two = ctx.dist:broadcast(7, 1)\nend }");
  EXPECT_EQ(call(), "");
  EXPECT_EQ(callbacks_[0].code->state(),
            (Json{{"all", {5, 6}}, {"max", {{"a", 2}, {"b", 3}}}, {"sum", 7}, {"two", 8}}));
  EXPECT_TRUE(dist_.last_place.ends_with("x.lua:11"));
}

TEST_F(LuaCallbacksTest, EvaluationsAndFactsOfTheEventAreAvailable) {
  const EvalScore good{2, 7.5, 100, 5, 1.5}, bad{3, 20.5, 100, 10};
  EvalRecords records;
  eval_ = &records;
  EXPECT_EQ(value("ctx.has_eval"), "false");
  records = {.total = EvalRecord{bad, good}, .sets = {{"c4", {good, good}}, {"code", {bad, good}}}};
  EXPECT_EQ(value("ctx.has_eval"), "true");
  EXPECT_EQ(value("ctx.eval.loss .. \" \" .. ctx.eval.best.step"), "3 5");
  EXPECT_EQ(value("ctx.eval.c4.loss .. \" \" .. ctx.eval.c4.perplexity .. \" \" .. ctx.eval.c4.tokens"),
            "2 7.5 100");
  EXPECT_EQ(value("ctx.eval.c4.bits_per_byte .. \" \" .. tostring(ctx.eval.bits_per_byte)"), "1.5 nil");
  EXPECT_EQ(value("ctx.eval.code.step .. \" \" .. ctx.eval.code.best.step"), "10 5");
  load("r.callbacks.a = t.observe { state = {}, ckpt_saved = function(ctx, st) st.tag = ctx.tag end }");
  EXPECT_TRUE(callbacks_[0].code->handles(Event::kCkptSaved));
  EXPECT_FALSE(callbacks_[0].code->handles(Event::kBatchEnd));
  EXPECT_EQ(call(Event::kCkptSaved, {{"tag", "best"}}), "");
  EXPECT_EQ(callbacks_[0].code->state().at("tag"), "best");
}

TEST_F(LuaCallbacksTest, ReadyOnesThatActOnEvaluationsLookAtTheMetricThatTheyAreGiven) {
  const auto score = [](double loss, int64_t step) { return EvalScore{loss, std::exp(loss), 100, step}; };
  EvalRecords records;
  eval_ = &records;
  const std::string data =
      "r.eval_data = { a = t.data.mds { local_dir = 'd' }, b = t.data.mds { local_dir = 'd' } }\n";
  const auto after = [&](double a, double b, int64_t step) {
    const auto add = [&](EvalRecord& record, double loss) {
      record.last = score(loss, step);
      if (record.best.step == 0 || loss < record.best.loss) record.best = record.last;
    };
    if (!records.total) records.total.emplace();
    add(records.sets["a"], a), add(records.sets["b"], b), add(*records.total, (a + b) / 2);
    commands_.clear();
    EXPECT_EQ(call(Event::kEvalEnd), "");
    return commands_.size();
  };
  load(data + "r.callbacks.a = t.cb.threshold_stop { metric = 'eval.b.loss', below = 4.5 }");
  EXPECT_EQ(after(1, 4.5, 1), 0u);
  EXPECT_EQ(after(9, 4, 2), 1u);
  EXPECT_EQ(command_text(commands_[0]), "stop(\"eval.b.loss is 4, below 4.5\")");
  records = {};
  load(data + "r.callbacks.a = t.cb.early_stop { patience = 1, metric = 'eval.b.loss' }");
  EXPECT_EQ(after(5, 5, 1), 0u);
  EXPECT_EQ(after(9, 4, 2), 0u);
  EXPECT_EQ(after(1, 4, 3), 1u);
  for (const char* metric : {"eval.b.loss", "eval.b.perplexity"}) {
    records = {};
    load(data + "r.callbacks.a = t.cb.checkpoint_best { metric = '" + metric + "' }");
    EXPECT_EQ(after(5, 5, 1), 1u);
    EXPECT_EQ(after(1, 6, 2), 0u);
    EXPECT_EQ(after(9, 4, 3), 1u);
  }
  const std::string with_tokenizer = "r.tokenizer = 'tokenizer.json'\n" + data;
  const auto after_bits = [&](std::optional<double> bits, double loss, int64_t step) {
    records.total->last = score(loss, step);
    records.total->last.bits_per_byte = bits;
    if (loss <= records.total->best.loss || step == 1) records.total->best = records.total->last;
    commands_.clear();
    EXPECT_EQ(call(Event::kEvalEnd), "");
    return commands_.size();
  };
  records = {.total = EvalRecord{}, .sets = {}};
  load(with_tokenizer + "r.callbacks.a = t.cb.checkpoint_best { metric = 'eval.bits_per_byte' }");
  EXPECT_EQ(after_bits(1.5, 5, 1), 1u);
  EXPECT_EQ(after_bits(1.6, 4, 2), 0u) << "its loss is lower, its bits per byte are not";
  EXPECT_EQ(after_bits({}, 3, 3), 0u) << "no text";
  EXPECT_EQ(after_bits(1.25, 6, 4), 1u);
  load(with_tokenizer + "r.callbacks.a = t.cb.threshold_stop { metric = 'eval.bits_per_byte', below = 1 }");
  EXPECT_EQ(after_bits({}, 5, 1), 0u);
  EXPECT_EQ(after_bits(0.75, 5, 2), 1u);
  EXPECT_EQ(command_text(commands_[0]), "stop(\"eval.bits_per_byte is 0.75, below 1\")");
  load(with_tokenizer + "r.callbacks.a = t.cb.early_stop { patience = 1, metric = 'eval.bits_per_byte' }");
  EXPECT_EQ(after_bits(1.5, 5, 1), 0u);
  EXPECT_EQ(after_bits(1.5, 4, 2), 1u);
  records = {};
  load(data + "r.callbacks.a = t.cb.checkpoint_best {}");
  EXPECT_EQ(after(5, 5, 1), 1u);
  EXPECT_EQ(after(1, 6, 2), 1u);
  EXPECT_EQ(after(9, 4, 3), 0u);
}

TEST_F(LuaCallbacksTest, WhatCallbacksRecordRaiseAndAnswerHasNoSecrets) {
  setenv("TYCHO_TEST_LATE", "canary-41", 1);  // read while the run trains, so the engine never hears of it
  load(
      "r.callbacks.a = t.observe { batch_end = function(ctx) local late = t.secret 'TYCHO_TEST_LATE'\n"
      "ctx.log:info('it is ' .. late, { [late] = late }) ctx.log:metric(late, 1) error(late) end }");
  const std::string raised = call();
  EXPECT_NE(raised.find("***"), std::string::npos) << raised;
  EXPECT_EQ(raised.find("canary"), std::string::npos) << raised;
  EXPECT_EQ(session_.events_,
            (std::vector<std::string>{R"(info: it is ***  ***=*** {"***":"***","step":0})"}));
  EXPECT_EQ(session_.metrics, (std::vector<std::pair<std::string, double>>{{"***", 1.0}}));
  CallbackPort port{commands_, &dist_};
  EXPECT_EQ(
      source_->evaluate("return 'canary-41'", false, {Event::kBatchEnd, metrics_, run_, eval_, {}}, port),
      "\"***\"");
}

TEST_F(LuaCallbacksTest, OperatorsLookAndOnlyWithRightsCommand) {
  load("");
  metrics_.loss = 1.5;
  CallbackPort port{commands_};
  const EventInfo info{Event::kBatchEnd, metrics_, run_};
  EXPECT_EQ(source_->evaluate("ctx.loss * 2", false, info, port), "3");
  EXPECT_EQ(source_->evaluate("cmd.set_lr(0.5)", true, info, port), "");
  EXPECT_NE(source_->evaluate("plot({ 1, 2, 4 })", false, info, port).find("\n"), std::string::npos);
  const std::string two =
      source_->evaluate("plot({ 1, 2 }, { early = { 4, 2 }, late = { 3, 1 } })", false, info, port);
  EXPECT_NE(two.find(" early  "), std::string::npos) << two << "one drawing, with a legend";
  EXPECT_NE(two.find(" late\n"), std::string::npos) << two;
  EXPECT_THROW(source_->evaluate("plot({ 1, 2 }, { a = { 1 } })", false, info, port), Error);
  EXPECT_NE(source_->evaluate("hist { 1, 1, 2 }", false, info, port).find(" 2"), std::string::npos);
  EXPECT_THROW(source_->evaluate("plot 'loss'", false, info, port), Error) << "no record in this folder";
  EXPECT_EQ(commands_.size(), 1u);
  EXPECT_THROW(source_->evaluate("cmd.set_lr(0.5)", false, info, port), Error);
  EXPECT_THROW(source_->evaluate("while", true, info, port), Error);
}

TEST_F(LuaCallbacksTest, TheReadyOnesRunOnWhatEveryCallbackHas) {
  metrics_.step = 20, metrics_.loss = 3, metrics_.lr = 0.5, metrics_.step_s = 0.1,
  metrics_.tokens_per_s = 1000, metrics_.tokens = 200, metrics_.samples = 10, metrics_.eta_s = 3700;
  const Json facts = {{"activations", {{{"rms", 1.0}, {"max", 2.0}}}}};
  for (const char* kind :
       {"speed", "memory", "lr", "runtime_estimate", "loss_ema", "loss_spike", "grad_norm", "activations",
        "kill_loss_spike", "param_norm", "optimizer_monitor", "histograms", "machine_use"}) {
    load(fmt::format("r.callbacks.a = t.cb.{} {{}}", kind));
    for (const auto& [name, event] : enum_names(Event{})) {
      if (!callbacks_[0].code->handles(event)) continue;
      EXPECT_EQ(call(event, facts), "") << kind << " " << name;
    }
  }
}

}  // namespace
}  // namespace tycho
