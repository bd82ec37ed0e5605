// What a trainer gets from the run around it.
#pragma once
#include <functional>
#include <string>

#include "trainer/callbacks/callback.h"
#include "trainer/checkpoint/checkpoint.h"
#include "trainer/saving/saver.h"
#include "trainer/session/callback_source.h"
#include "trainer/train/loop_context.h"

namespace tycho {

/// Dependencies of the trainer; all of them outlive it.
struct TrainerContext : LoopContext {
  Saver& saver;
  CheckpointMeta checkpoint;            // recorded in every checkpoint, apart from step and state
  CallbackSource* callbacks = nullptr;  // null: none of the recipe's callbacks run
  int local_rank = 0;                   // number of this process on its machine
  bool paranoid = false;                // ranks are compared at step boundaries
  /// Throws Error (kFolderOwned) when another process owns the run folder now. Fast. Null when no process can
  /// take it.
  std::function<void()> require_owner = {};
  int num_nodes = 1;  // number of machines of all ranks
  std::string until;  // duration after which this process leaves the run, or ""
};

}  // namespace tycho
