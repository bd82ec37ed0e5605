// Runs with callbacks and a schedule in C++, made anew for every run.
#pragma once
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/callbacks/fake_callback.h"
#include "tests/trainer/run/run_fixture.h"
#include "trainer/session/callback_source.h"

namespace tycho {

/// Callbacks made anew for every run, as a recipe makes them.
class FakeSource final : public CallbackSource {
 public:
  std::function<std::vector<Callback>()> make = [] { return std::vector<Callback>(); };
  std::function<double(int64_t)> factor;  // of a dynamic schedule
  std::vector<Callback> callbacks() override { return make(); }
  std::unique_ptr<ScheduleCode> schedule() override {
    struct Code final : ScheduleCode {
      std::function<double(int64_t)> factor_;
      double sum = 0;
      explicit Code(std::function<double(int64_t)> f) : factor_(std::move(f)) {}
      double factor(int64_t step, int64_t, std::optional<double> loss) override {
        const double share = factor_(step);  // what it throws leaves the state as it was, as in Lua
        sum += loss.value_or(0);
        return share / (1 + sum);
      }
      Json state() const override { return {{"sum", sum}}; }
      void set_state(const Json& state) override { sum = state.at("sum"); }
    };
    return factor ? std::make_unique<Code>(factor) : nullptr;
  }
  void set_session(TrainingSession*) override {}
  std::string evaluate(const std::string&, bool, const EventInfo&, CallbackPort&) override { return ""; }
};

class CallbacksRunTest : public RunTest {
 protected:
  CallbacksRunTest() {
    write_data(64, config_.seq_len, 64);
    callbacks_ = &source_;
  }
  /// A controller that, at some steps, gives commands.
  void control(std::function<void(const EventInfo&, CallbackPort&, Json&)> body,
               std::set<Event> events = {Event::kBatchEnd}, CallbackOptions options = {}) {
    source_.make = [=] {
      std::vector<Callback> callbacks;
      callbacks.push_back(fake_callback("x", events, body, options, Json::object()));
      return callbacks;
    };
  }
  std::map<int64_t, double> values(const std::string& name) const {
    std::map<int64_t, double> found;
    for (const Json& line : lines("metrics.jsonl"))
      if (line.contains(name)) found[line.at("step")] = line.at(name);
    return found;
  }
  std::vector<std::string> texts(const std::string& kind) const {
    std::vector<std::string> found;
    for (const Json& line : lines("events.jsonl"))
      if (line.at("kind") == kind) found.push_back(line.at("text"));
    return found;
  }
  FakeSource source_;
};

inline void order(CallbackPort& port, const std::string& name, const Json& values = Json::array(),
                  const Json& named = nullptr) {
  port.commands.push_back(make_command(name, values, named, ""));
}

}  // namespace tycho
