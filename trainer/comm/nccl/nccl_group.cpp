// A watchdog thread polls the state of the group and aborts it, since NCCL itself waits forever.
#include "trainer/comm/nccl/nccl_group.h"

#include <c10/core/impl/VirtualGuardImpl.h>

#include <chrono>

#include "trainer/base/as_error.h"
#include "trainer/comm/collective_strings.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;

constexpr auto kLook = std::chrono::milliseconds(200);
constexpr auto kLookWhileJoining = std::chrono::milliseconds(20);
constexpr auto kJoin = std::chrono::minutes(5);

void make_current(const at::Device& device) { c10::impl::VirtualGuardImpl(device.type()).setDevice(device); }

}  // namespace

NcclGroup::NcclGroup(Communicator& host, const at::Device& device) : host_(host), device_(device) {
  try {
    join();
  } catch (const std::exception& error) {
    if (group_ != nullptr) nccl().destroy(group_);
    // The others wait for this rank, and no other rank will tell them.
    throw host_.abort(as_error(error));
  }
  thread_ = std::thread([this] { watch(); });
}

NcclGroup::~NcclGroup() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
  nccl().destroy(group_);
}

void NcclGroup::join() {
  std::string id;
  if (host_.rank() == 0) {
    id.resize(NcclTable::kIdBytes);
    nccl().make_id(id.data());
  }
  id = all_gather_strings(host_, id).front();
  make_current(device_);
  group_ = nccl().join(id.data(), host_.rank(), host_.size());
  const auto deadline = Clock::now() + kJoin;
  for (std::string text;; std::this_thread::sleep_for(kLookWhileJoining)) {
    const bool broken = host_.is_broken();  // starts the host group's watch, on the thread that owns that
                                            // group
    const NcclTable::State state = nccl().state(group_, text);
    if (state == NcclTable::State::kReady) return;
    if (broken) throw host_.why_broken("it left while the GPUs were connecting");
    if (state != NcclTable::State::kJoining)
      fail(ExitCode::kTopology,
           "[nccl] the GPUs of this run cannot reach each other: {}; NCCL_DEBUG=INFO prints more", text);
    if (Clock::now() > deadline)
      fail(ExitCode::kTopology,
           "[nccl] the GPUs of this run did not connect within {} minutes; NCCL_DEBUG=INFO prints more",
           kJoin.count());
  }
}

NcclTable::Group NcclGroup::get() {
  check();
  make_current(device_);
  return group_;
}

void NcclGroup::check() {
  if (!broken_) return;
  if (!told_)
    told_ = is_own_ ? Error(fmt::format("[nccl] rank {}: a collective failed on its GPU: {}; NCCL_DEBUG=INFO "
                                        "prints more. The same command resumes from the newest checkpoint",
                                        host_.rank(), how_),
                            ExitCode::kTopology)
                    : host_.why_broken(how_);
  throw *told_;
}

void* NcclGroup::register_buffer(void* data, int64_t num_bytes) {
  return nccl().register_buffer(get(), data, num_bytes);
}

void NcclGroup::deregister_buffer(void* registration) noexcept {
  nccl().deregister_buffer(group_, registration);
}

void NcclGroup::watch() {
  make_current(device_);
  std::unique_lock lock(mutex_);
  while (!changed_.wait_for(lock, kLook, [&] { return ends_; })) {
    if (!look()) continue;
    broken_ = true;
    nccl().abort(group_);  // threads that wait for the GPU continue, and find that the group is broken
    return;
  }
}

/// Returns true if the group must be aborted.
bool NcclGroup::look() {
  if (host_.is_broken()) {
    how_ = "it left";
    return true;
  }
  const NcclTable::State state = nccl().state(group_, how_);
  is_own_ = state == NcclTable::State::kFailed;
  return is_own_ || state == NcclTable::State::kPeerLost;
}

}  // namespace tycho
