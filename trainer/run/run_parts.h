// The parts of an open run, and the functions that make them.
#pragma once
#include <c10/core/Device.h>

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "trainer/base/json.h"
#include "trainer/callbacks/callback.h"
#include "trainer/comm/communicator.h"
#include "trainer/comm/mesh.h"
#include "trainer/comm/world.h"
#include "trainer/data/chat/chat_dataset.h"
#include "trainer/data/loader/text_dataset.h"
#include "trainer/data/rows/opened_data.h"
#include "trainer/data/tokenizer/tokenizer.h"
#include "trainer/lock/owned_files.h"
#include "trainer/lock/run_lock.h"
#include "trainer/metrics/reporter.h"
#include "trainer/recipe/train_config.h"
#include "trainer/run/run_remote.h"
#include "trainer/saving/saver.h"
#include "trainer/session/callback_source.h"
#include "trainer/session/run_request.h"
#include "trainer/session/session.h"
#include "trainer/train/trainer.h"

namespace tycho {

/// The parts in the order in which they are made; parts refer to earlier ones. Owned by one thread.
struct RunParts {
  Json recipe;
  TrainConfig config;
  const std::atomic<int>& stop;
  std::unique_ptr<Communicator> world;  // the ranks of this run
  std::optional<Mesh> mesh;
  SessionFacts facts;
  std::string tokenizer_text;
  std::unique_ptr<Tokenizer> tokenizer;
  at::Device device = at::kCPU;
  int64_t memory_before = 0;
  std::unique_ptr<OpenedData> opened = std::make_unique<OpenedData>();
  std::vector<std::shared_ptr<const ChatDataset>> chats;
  std::vector<std::shared_ptr<const TextDataset>> texts;
  std::unique_ptr<RunLock> lock;  // on rank 0, like the files
  std::optional<OwnedFiles> files;
  std::unique_ptr<Reporter> reporter;
  RunRemote remote;  // outlives the saver
  std::unique_ptr<Saver> saver;
  std::unique_ptr<Trainer> trainer;
  std::vector<ParamInfo> params;
  std::vector<std::pair<size_t, size_t>> places;  // of each parameter: unit, position in it
  CallbackSource* callbacks = nullptr;
};

/// Makes the recipe and the world of its ranks. Collective. Throws Error (kTopology).
RunParts meet_ranks(const RunRequest& request, const std::atomic<int>& stop, const WorldMaker& make_world);

/// Makes the other parts: checks everything that can fail before the run folder is touched, takes the folder,
/// and makes the trainer with first or resumed weights. `session` is passed to the callbacks. Collective.
/// Throws Error; the folder of a run then has a line about it, unless another process owns it.
void open_run(RunParts& run, const RunRequest& request, std::unique_ptr<Reporter> display,
              TrainingSession& session);

}  // namespace tycho
