// A run's only callback, in C++.
#pragma once
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "tests/trainer/callbacks/fake_callback.h"
#include "trainer/session/callback_source.h"

namespace tycho {

class OneCallback final : public CallbackSource {
 public:
  OneCallback(std::set<Event> events, FakeCode::Body body)
      : events_(std::move(events)), body_(std::move(body)) {}
  std::vector<Callback> callbacks() override {
    std::vector<Callback> all;
    all.push_back(fake_callback("x", events_, body_, {}, Json::object()));
    return all;
  }
  std::unique_ptr<ScheduleCode> schedule() override { return nullptr; }
  void set_session(TrainingSession*) override {}
  std::string evaluate(const std::string&, bool, const EventInfo&, CallbackPort&) override { return ""; }

 private:
  std::set<Event> events_;
  FakeCode::Body body_;
};

}  // namespace tycho
