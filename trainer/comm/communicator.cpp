// The world of one: the sums and copies of one rank are its own numbers.
#include "trainer/comm/communicator.h"

#include "trainer/comm/collective_checks.h"

namespace tycho {
namespace {

const char* name_of(at::ScalarType dtype) {
  switch (dtype) {
    case at::kFloat: return "fp32";
    case at::kDouble: return "fp64";
    case at::kBFloat16: return "bf16";
    case at::kInt: return "int32";
    case at::kLong: return "int64";
    case at::kByte: return "uint8";
    default: return c10::toString(dtype);
  }
}

class Done final : public Pending {
 public:
  void wait() override {}
};

class WorldOfOne final : public Communicator {
 public:
  int rank() const override { return 0; }
  int size() const override { return 1; }
  void all_reduce(Tensor& x) override { check_sum("all_reduce", x); }
  void all_gather(Tensor& out, const Tensor& in) override {
    check_all_gather(out, in, *this);
    copy(out, in);
  }
  void reduce_scatter(Tensor& out, const Tensor& in) override {
    check_reduce_scatter(out, in, *this);
    copy(out, in);
  }
  void broadcast(Tensor& x, int root) override { check_broadcast(x, root, *this); }
  void barrier() override {}
  void send(const Tensor& x, int to) override { check_message("send", x, to, *this); }
  void recv(Tensor& x, int from) override { check_message("recv", x, from, *this); }
  std::unique_ptr<Communicator> split(int, int) override { return make_world_of_one(); }

 private:
  static void copy(Tensor& out, const Tensor& in) {
    if (out.data_ptr() != in.data_ptr()) out.view(-1).copy_(in.view(-1));
  }
};

}  // namespace

CollectiveCall call_of(const char* op, const Tensor& x, int peer) {
  return {op, name_of(x.scalar_type()), static_cast<int64_t>(x.nbytes()), peer};
}

std::unique_ptr<Pending> Communicator::start_one(GroupedCall call) {
  switch (call.op) {
    case GroupedCall::Op::kAllReduce: all_reduce(call.out); break;
    case GroupedCall::Op::kAllGather: all_gather(call.out, call.in); break;
    case GroupedCall::Op::kReduceScatter: reduce_scatter(call.out, call.in); break;
    case GroupedCall::Op::kSend: send(call.in, call.peer); break;
    case GroupedCall::Op::kRecv: recv(call.out, call.peer); break;
  }
  return std::make_unique<Done>();
}

std::vector<std::unique_ptr<Pending>> Communicator::start_together(const std::vector<GroupedCall>& calls) {
  // Sends start first: others receive them, even where receiving blocks.
  std::vector<std::unique_ptr<Pending>> all(calls.size());
  for (const bool sends : {true, false})
    for (size_t i = 0; i < calls.size(); ++i)
      if ((calls[i].op == GroupedCall::Op::kSend) == sends) all[i] = start_one(calls[i]);
  return all;
}

std::unique_ptr<Communicator> make_world_of_one() { return std::make_unique<WorldOfOne>(); }

}  // namespace tycho
