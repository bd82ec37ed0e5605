// The happens-before checker of this process: what the stand-in does is told to it, and it ends the process
// at the first pair of uses that nothing orders.
#pragma once
#include <cuda_runtime_api.h>

#include <cstddef>
#include <string>
#include <vector>

#include "tests/standin_gpu/runtime/order.h"

namespace standin {

/// Memory that an operation reads and writes; what is not a device's or pinned is left out.
struct Uses {
  std::vector<Bytes> reads, writes;

  Uses& read(const void* begin, size_t bytes);
  Uses& write(const void* begin, size_t bytes);
};

/// False where TYCHO_STANDIN_ORDER is off, and in record mode. All that follows then does nothing.
bool checks();
void enqueued(const std::string& name, cudaStream_t stream, const Uses& uses);
void used_by_host(const std::string& name, const Uses& uses);
void freed(const void* begin, size_t bytes);
void recorded(long event, cudaStream_t stream);
/// Waits of a stream for an event, and of the host for an event, a stream or everything.
void stream_waits(const char* name, cudaStream_t stream, long event);
void host_waits_for_event(const char* name, long event);
void host_waits_for_stream(const char* name, cudaStream_t stream);
void host_waits_for_device(const char* name);
/// Answers a query: true if a thread of the host has waited for what the event marks, or, of event -1, for
/// all of the stream.
bool is_told_done(long event, cudaStream_t stream = nullptr);
void ended_event(long event);

/// True once anything was put on a stream.
bool is_in_use();
/// This thread leaves what it knows at a mark, or takes what was left there.
void handed_over(long mark);
void took_over(long mark);
/// Notes a thread's own start and end. Most threads tell nothing, and get no number.
void begun(long mark);
void ends(long mark);

/// Names the work of this thread for reports: "optimizer". A step ends where "optimizer" does.
void enter(const std::string& name);
void leave();

}  // namespace standin
