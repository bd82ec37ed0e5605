// The events of the training loop. A new one is a line of each list here, and its announce() in the loop.
// Torch-free.
#pragma once
#include <array>
#include <cstddef>

#include "trainer/base/fields.h"

namespace tycho {

enum class Event {
  kSetup,
  kLoad,
  kFitStart,
  kEpochStart,
  kBatchStart,
  kAfterForward,
  kGradsReady,
  kBatchEnd,
  kEpochEnd,
  kEvalStart,
  kEvalEnd,
  kCkptSaved,
  kSignal,
  kError,
  kFitEnd,
};

struct EventEntry {
  Event event;
  const char* name;  // key of a callback's function, and ctx.event
  const char* help;
  bool of_step = false;  // a callback's `every` and `at` apply
  bool in_step = false;  // fires while a step runs, whose number is that of the steps done and one
};

/// In the order of Event. Recipe keys, their help and the names follow from this table.
inline constexpr std::array kEvents = {
    EventEntry{Event::kSetup, "setup", "Everything is built, but nothing is loaded yet."},
    EventEntry{Event::kLoad, "load", "Weights and state are loaded."},
    EventEntry{Event::kFitStart, "fit_start", "Before the first step of this process."},
    EventEntry{Event::kEpochStart, "epoch_start", "Before the first batch of an epoch."},
    EventEntry{Event::kBatchStart, "batch_start", "Before the first micro-batch of a step.", true, true},
    EventEntry{Event::kAfterForward, "after_forward",
               "Between forward and backward of the last micro-batch; with parallel.pp after both.", true,
               true},
    EventEntry{Event::kGradsReady, "grads_ready", "Gradients are complete, not clipped yet.", true, true},
    EventEntry{Event::kBatchEnd, "batch_end", "After the optimizer step.", true},
    EventEntry{Event::kEpochEnd, "epoch_end", "After the last batch of an epoch."},
    EventEntry{Event::kEvalStart, "eval_start", "Before an evaluation."},
    EventEntry{Event::kEvalEnd, "eval_end", "After an evaluation."},
    EventEntry{Event::kCkptSaved, "ckpt_saved",
               "A checkpoint is durable; this is some steps after its save began."},
    EventEntry{Event::kSignal, "signal", "A signal asked the run to stop; the next step boundary saves."},
    EventEntry{Event::kError, "error", "Something failed, but training continues."},
    EventEntry{Event::kFitEnd, "fit_end", "After the last step of this process."},
};

constexpr size_t index_of(Event event) { return static_cast<size_t>(event); }
constexpr const EventEntry& entry_of(Event event) { return kEvents[index_of(event)]; }

constexpr EnumNames<Event, kEvents.size()> enum_names(Event) {
  EnumNames<Event, kEvents.size()> names;
  for (size_t i = 0; i < kEvents.size(); ++i) names[i] = {kEvents[i].name, kEvents[i].event};
  return names;
}

static_assert(
    [] {
      for (size_t i = 0; i < kEvents.size(); ++i)
        if (index_of(kEvents[i].event) != i) return false;
      return kEvents.size() == index_of(Event::kFitEnd) + 1;
    }(),
    "kEvents lists every event once, in the order of Event");

}  // namespace tycho
