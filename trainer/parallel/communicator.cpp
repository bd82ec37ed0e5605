// The world of one: sums and copies of one rank are the numbers themselves.
#include "trainer/parallel/communicator.h"

#include "trainer/parallel/verb_checks.h"

namespace tycho {
namespace {

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

std::unique_ptr<Pending> Communicator::start_all_reduce(Tensor& x) {
  all_reduce(x);
  return std::make_unique<Done>();
}

std::unique_ptr<Pending> Communicator::start_all_gather(Tensor& out, const Tensor& in) {
  all_gather(out, in);
  return std::make_unique<Done>();
}

std::unique_ptr<Pending> Communicator::start_reduce_scatter(Tensor& out, const Tensor& in) {
  reduce_scatter(out, in);
  return std::make_unique<Done>();
}

std::unique_ptr<Communicator> make_world_of_one() { return std::make_unique<WorldOfOne>(); }

}  // namespace tycho
