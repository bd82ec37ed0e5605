// NCCL's half of libtycho_cuda.so. The only source that includes nccl.h.
#include "trainer/parallel/nccl_plugin.h"

#include <nccl.h>

#include <cstring>

#include "trainer/base/error.h"

namespace tycho {
namespace {

static_assert(sizeof(ncclUniqueId) == NcclTable::kIdBytes);

void check(ncclResult_t status, const char* what) {
  if (status != ncclSuccess)
    fail(ExitCode::kTopology, "[nccl] {}: {} ({}); NCCL_DEBUG=INFO says more", what,
         ncclGetErrorString(status), ncclGetLastError(nullptr));
}

ncclComm_t comm_of(NcclTable::Group group) { return static_cast<ncclComm_t>(group); }
cudaStream_t stream_of(Stream stream) { return static_cast<cudaStream_t>(stream); }

ncclDataType_t type_of(NcclTable::Number number) {
  switch (number) {
    case NcclTable::Number::kFp32: return ncclFloat32;
    case NcclTable::Number::kFp64: return ncclFloat64;
    case NcclTable::Number::kBf16: return ncclBfloat16;
    case NcclTable::Number::kInt32: return ncclInt32;
    case NcclTable::Number::kInt64: return ncclInt64;
    case NcclTable::Number::kByte: return ncclUint8;
  }
  return ncclUint8;
}

void make_id(char* id) {
  ncclUniqueId made;
  check(ncclGetUniqueId(&made), "no id for this run");
  std::memcpy(id, &made, sizeof made);
}

NcclTable::Group join(const char* id, int rank, int num_ranks) {
  ncclUniqueId given;
  std::memcpy(&given, id, sizeof given);
  ncclComm_t comm = nullptr;
  check(ncclCommInitRank(&comm, num_ranks, given, rank), "the GPUs of this run cannot reach each other");
  return comm;
}

void all_reduce(NcclTable::Group group, void* data, int64_t count, NcclTable::Number number, Stream stream) {
  check(ncclAllReduce(data, data, static_cast<size_t>(count), type_of(number), ncclSum, comm_of(group),
                      stream_of(stream)),
        "all_reduce");
}

void broadcast(NcclTable::Group group, void* data, int64_t num_bytes, int root, Stream stream) {
  check(ncclBroadcast(data, data, static_cast<size_t>(num_bytes), ncclUint8, root, comm_of(group),
                      stream_of(stream)),
        "broadcast");
}

void abort(NcclTable::Group group) { ncclCommAbort(comm_of(group)); }

constexpr NcclTable kTable = {make_id, join, all_reduce, broadcast, abort};

}  // namespace

const NcclTable* nccl_table() { return &kTable; }

}  // namespace tycho
