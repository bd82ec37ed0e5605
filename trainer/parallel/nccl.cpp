// Runs reductions on a second stream, which events order with the current one.
#include "trainer/parallel/nccl.h"

#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <utility>

#include "trainer/parallel/nccl_group.h"

namespace tycho {
namespace {

NcclTable::Number number_of(const Tensor& x) {
  switch (x.scalar_type()) {
    case at::kFloat: return NcclTable::Number::kFp32;
    case at::kDouble: return NcclTable::Number::kFp64;
    case at::kBFloat16: return NcclTable::Number::kBf16;
    case at::kInt: return NcclTable::Number::kInt32;
    case at::kLong: return NcclTable::Number::kInt64;
    case at::kByte: return NcclTable::Number::kByte;
    default: fail(ExitCode::kFailure, "[nccl] cannot sum {}", c10::toString(x.scalar_type()));
  }
}

/// The current stream goes on when what the event marks is done; the host does not wait.
class OnStream final : public Pending {
 public:
  OnStream(c10::Event event, c10::Stream waits) : event_(std::move(event)), waits_(waits) {}
  void wait() override { event_.block(waits_); }

 private:
  c10::Event event_;
  c10::Stream waits_;
};

class NcclWorld final : public Communicator {
 public:
  NcclWorld(std::unique_ptr<Communicator> host, const at::Device& device)
      : host_(std::move(host)),
        device_(device),
        streams_(device.type()),
        own_stream_(streams_.getStreamFromGlobalPool(device, /*isHighPriority=*/true)),
        group_(*host_, device) {}

  int rank() const override { return host_->rank(); }
  int size() const override { return host_->size(); }
  void all_reduce(Tensor& x) override {
    if (x.is_cpu()) return host_->all_reduce(x);
    reduce_on(x, streams_.getStream(device_));
  }
  std::unique_ptr<Pending> start_all_reduce(Tensor& x) override {
    if (x.is_cpu()) return host_->start_all_reduce(x);
    const c10::Stream current = streams_.getStream(device_);
    c10::Event written(device_.type()), summed(device_.type());
    written.record(current);
    written.block(own_stream_);
    reduce_on(x, own_stream_);
    summed.record(own_stream_);
    return std::make_unique<OnStream>(std::move(summed), current);
  }
  void broadcast(Tensor& x, int root) override {
    if (x.is_cpu()) return host_->broadcast(x, root);
    nccl().broadcast(group_.get(), x.data_ptr(), static_cast<int64_t>(x.nbytes()), root,
                     streams_.getStream(device_).native_handle());
  }
  void barrier() override { host_->barrier(); }
  void leave(const Error& error) override { host_->leave(error); }
  void check() override { group_.check(); }

 private:
  void reduce_on(Tensor& x, const c10::Stream& stream) {
    nccl().all_reduce(group_.get(), x.data_ptr(), x.numel(), number_of(x), stream.native_handle());
  }

  std::unique_ptr<Communicator> host_;
  at::Device device_;
  c10::impl::VirtualGuardImpl streams_;
  c10::Stream own_stream_;  // for sums that travel while the current stream computes
  NcclGroup group_;
};

}  // namespace

std::unique_ptr<Communicator> make_nccl_world(std::unique_ptr<Communicator> host, const at::Device& device) {
  return std::make_unique<NcclWorld>(std::move(host), device);
}

}  // namespace tycho
