// A callback in C++ for tests: its code is a lambda.
#pragma once
#include <functional>
#include <memory>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "trainer/callbacks/callback.h"

namespace tycho {

class FakeCode final : public CallbackCode {
 public:
  using Body = std::function<void(const EventInfo& info, CallbackPort& port, Json& state)>;
  FakeCode(std::set<Event> events, Body body, Json state = nullptr)
      : events_(std::move(events)), body_(std::move(body)), state_(std::move(state)) {}
  bool handles(Event event) const override { return events_.contains(event); }
  void run(const EventInfo& info, CallbackPort& port) override {
    Json changed = state_;
    body_(info, port, changed);
    state_ = changed;
  }
  Json state() const override { return state_; }
  void set_state(const Json& state) override { state_ = state; }

 private:
  std::set<Event> events_;
  Body body_;
  Json state_;
};

inline Callback fake_callback(const std::string& name, std::set<Event> events, FakeCode::Body body,
                              CallbackOptions options = {}, Json state = nullptr,
                              CallbackKind kind = CallbackKind::kControl) {
  return {name, kind, std::move(options),
          std::make_unique<FakeCode>(std::move(events), std::move(body), std::move(state))};
}

}  // namespace tycho
