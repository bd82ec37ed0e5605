// Rank 0 opens its listener, the others connect to it, and all wait until every rank has arrived.
#include "trainer/rendezvous/meet/rendezvous.h"

#include <fcntl.h>
#include <fmt/ranges.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdio>
#include <future>
#include <optional>
#include <thread>
#include <utility>

#include "trainer/base/hash.h"
#include "trainer/base/host_name.h"
#include "trainer/base/secrets.h"
#include "trainer/rendezvous/dial.h"
#include "trainer/rendezvous/handed_listener.h"
#include "trainer/rendezvous/job_token.h"
#include "trainer/rendezvous/launcher_reports.h"
#include "trainer/rendezvous/listener.h"
#include "trainer/rendezvous/meet/answered_requests.h"
#include "trainer/rendezvous/meet/arrived_sockets.h"
#include "trainer/rendezvous/meet/member_monitor.h"
#include "trainer/rendezvous/meet/root_monitor.h"

namespace tycho {
namespace {

using Clock = std::chrono::steady_clock;
using std::chrono::milliseconds;

constexpr auto kLook = milliseconds(50);         // between checks for a stop
constexpr auto kFirstLine = milliseconds(5000);  // wait after which the first line is printed
constexpr auto kNextLine = milliseconds(30'000);
constexpr auto kDial = milliseconds(5000);
constexpr auto kFirstPause = milliseconds(20), kLongestPause = milliseconds(1000);  // between two calls
constexpr auto kLastWrite = milliseconds(2000);
constexpr auto kToldLate = milliseconds(10'000);  // for rank 0 to name the missing; then it is lost
constexpr double kStart_s = 600, kStartOfLaunch_s = 60;
constexpr const char* kNoRouteAdvice =
    "; set TYCHO_INTERFACE to the network interface by which all machines reach each other";
constexpr const char* kJoin = "join";
constexpr const char* kData = "data ";

Clock::duration seconds(double value) {
  return std::chrono::duration_cast<Clock::duration>(std::chrono::duration<double>(value));
}

std::string names(const std::vector<int>& ranks) {
  return fmt::format("rank{} {}", ranks.size() > 1 ? "s" : "", fmt::join(ranks, ", "));
}

/// Returns the seconds to wait for all ranks: a scheduler may start ranks minutes apart, a launcher of one
/// machine starts them all at once.
double start_limit_s(const RankInfo& place, const MeetOptions& options) {
  const bool is_launched = on_one_machine(place) && options.variable(kReportVariable).has_value();
  return options.join_s.value_or(is_launched ? kStartOfLaunch_s : kStart_s);
}

std::string world_name(const RankInfo& place, const std::string& world) {
  return hash_hex(place.job + "/" + world);
}

class MetPeers final : public Peers {
 public:
  MetPeers(const RankInfo& place, const MeetOptions& options)
      : place_(place),
        options_(writing_collectives(options)),
        join_s_(start_limit_s(place, options)),
        recent_(std::make_shared<RecentCollectives>(*options_.progress)),
        requests_(recent_, place.rank == 0 ? [this](const std::string& request) { root_->pass_on(request); }
                                           : AnsweredRequests::PassOn()) {
    const InPhase phase("meeting the other ranks", *options_.progress);
    if (place_.rank == 0)
      host();
    else
      join();
  }

  ~MetPeers() override { requests_.end(); }

  int rank() const override { return place_.rank; }
  int num_ranks() const override { return place_.num_ranks; }
  std::vector<Socket> connect(const std::string& purpose, const std::vector<int>& ranks) override;
  int broken_fd() const override { return monitor_->broken_fd(); }
  bool is_broken() const override { return monitor_->is_broken(); }
  Error why_broken(const std::string& what, const std::vector<int>& suspects) override {
    return after_writing(monitor_->why_broken(what, suspects));
  }
  Error abort(const Error& error) override { return after_writing(monitor_->abort(error)); }
  RecentCollectives& collectives() override { return *recent_; }
  void keep_collectives_in(const std::string& folder) override {
    recent_->keep_in(folder, {place_.rank, place_.num_ranks, getpid(), host_name(),
                              world_name(place_, monitor_->world())});
  }
  void mark(const std::string& name) override { monitor_->mark(name); }
  bool is_marked(const std::string& name) override { return monitor_->is_marked(name); }

 private:
  void host();
  void join();
  void find_rank_0(Clock::time_point deadline, Socket& line, Endpoint& there);
  void wait_for_all(Clock::time_point deadline);
  void check_stop(const std::string& waiting_for);
  std::optional<std::string> token();
  void start_listening(Socket listener);
  HandshakeVerdict judge(const RankClaim& claim);
  std::optional<std::string> objection(const RankClaim& claim) const;
  Socket call(int rank, const std::string& purpose, Clock::time_point deadline);
  Socket await(int rank, const std::string& purpose, Clock::time_point deadline);
  Member self(const Endpoint& endpoint) const {
    return {place_.rank, getpid(), host_name(), endpoint.host(), endpoint.port()};
  }
  MeetOptions writing_collectives(MeetOptions options);
  Error after_writing(const Error& end);
  void say(const std::string& line) const {
    if (options_.say) return options_.say(line);
    std::fprintf(stderr, "%s\n", line.c_str());
  }

  const RankInfo place_;
  const MeetOptions options_;
  const double join_s_;
  std::string token_;
  Endpoint rank_0_;  // address by which this rank reaches it
  ArrivedSockets arrived_;
  const std::shared_ptr<RecentCollectives> recent_;
  AnsweredRequests requests_;
  std::atomic<bool> has_written_ = false;  // the collectives of recent_ are written
  std::unique_ptr<Monitor> monitor_;
  RootMonitor* root_ = nullptr;          // monitor_ on rank 0, else null
  std::unique_ptr<Listener> listening_;  // calls the members above
};

/// Makes a process that is about to be ended write its collectives on a thread that it can leave behind: its
/// main thread may be stuck in the file system.
MeetOptions MetPeers::writing_collectives(MeetOptions options) {
  options.before_end = [this, given = options.before_end](const Error& cause) {
    if (given) given(cause);
    if (has_written_.exchange(true) || cause.code() == ExitCode::kFolderOwned) return;
    const auto done = std::make_shared<std::promise<void>>();
    std::thread([recent = recent_, text = without_secrets(cause.what()), done] {
      try {
        recent->write(text);
      } catch (const std::exception&) {  // the line that ends this process has the reason
      }
      done->set_value();
    }).detach();
    done->get_future().wait_for(kLastWrite);
  };
  options.on_request = [this](const std::string& request) { requests_.answer(request); };
  return options;
}

/// Writes this rank's last collectives to their folder, unless another run owns the folder now.
Error MetPeers::after_writing(const Error& end) {
  const std::string folder = recent_->folder();
  if (folder.empty() || end.code() == ExitCode::kFolderOwned || has_written_.exchange(true)) return end;
  try {
    recent_->write(without_secrets(end.what()));
    const auto cause = monitor_->cause();
    // Only one rank says so, and not one that has gone.
    if (place_.rank == (cause && cause->rank == 0 ? 1 : 0))
      say(fmt::format(
          "[ranks] each rank left its last collectives in {}; tycho report --collectives says who "
          "waits for whom",
          folder));
  } catch (const std::exception& error) {
    say(fmt::format("[ranks] the last collectives of rank {} are lost: {}", place_.rank, error.what()));
  }
  return end;
}

void MetPeers::host() {
  const auto deadline = Clock::now() + seconds(join_s_);
  Socket listener = take_listener(place_);
  if (!listener.is_open()) listener = listen_at(rendezvous_endpoint(place_, options_.variable));
  std::unique_ptr<JobTokenFile> file;
  token_ = place_.token;
  if (token_.empty() && place_.num_ranks > 1) {
    file = std::make_unique<JobTokenFile>(token_path(place_, options_.shared_dir), place_.job);
    token_ = file->token();
  }
  auto root = std::make_unique<RootMonitor>(place_, options_, self(local_end(listener.fd())));
  root_ = root.get();
  monitor_ = std::move(root);
  start_listening(std::move(listener));
  wait_for_all(deadline);
}

void MetPeers::join() {
  const auto deadline = Clock::now() + seconds(join_s_);
  Socket line;
  find_rank_0(deadline, line, rank_0_);
  Socket listener = listen_at(own_endpoint(place_, local_end(line.fd()), options_.variable));
  monitor_ =
      std::make_unique<MemberMonitor>(place_, options_, self(local_end(listener.fd())), std::move(line));
  start_listening(std::move(listener));
  wait_for_all(deadline + kToldLate);
}

/// Returns the token; nothing while rank 0 has not written one.
std::optional<std::string> MetPeers::token() {
  if (!place_.token.empty()) return place_.token;
  return find_token(token_path(place_, options_.shared_dir), place_.job);
}

void MetPeers::find_rank_0(Clock::time_point deadline, Socket& line, Endpoint& there) {
  const std::string address = on_one_machine(place_) ? "127.0.0.1" : place_.address;
  const std::string goal = fmt::format("rank 0 at {}:{} ({})", address, place_.port, place_.source);
  const RankClaim claim{
      .rank = place_.rank, .num_ranks = place_.num_ranks, .run = hash_hex(place_.job), .purpose = kJoin};
  const auto gives_up = [this] { return options_.stop != nullptr && *options_.stop != 0; };
  auto next_line = Clock::now() + kFirstLine;
  milliseconds pause = kFirstPause;
  std::string why;
  while (true) {
    check_stop(goal);
    if (const auto found = token()) {
      token_ = *found;
      for (const Endpoint& endpoint : resolve(address, place_.port, why)) {
        DialResult result = dial(endpoint, token_, claim, kDial, gives_up);
        if (result.how == DialResult::How::kRefused) throw Error(result.why, ExitCode::kTopology);
        why = result.why;
        there = endpoint;
        line = std::move(result.socket);
        if (line.is_open()) return;
      }
    } else {
      why = "it has not left its token at " + token_path(place_, options_.shared_dir);
    }
    const auto now = Clock::now();
    if (now >= deadline)
      fail(ExitCode::kTopology, "[parallel] rank {} did not find {} within {:g} s: {}", place_.rank, goal,
           join_s_, why);
    if (now >= next_line) {
      say(fmt::format("[ranks] rank {} waits for {}: {}; gives up in {:.0f} s", place_.rank, goal, why,
                      std::chrono::duration<double>(deadline - now).count()));
      next_line = now + kNextLine;
    }
    std::this_thread::sleep_for(std::min(pause, kLook));
    pause = std::min(2 * pause, kLongestPause);
  }
}

void MetPeers::wait_for_all(Clock::time_point deadline) {
  auto next_line = Clock::now() + kFirstLine;
  while (!monitor_->wait_until_met(kLook)) {
    const std::vector<int> missing = monitor_->missing();
    const auto now = Clock::now();
    try {
      check_stop(place_.rank == 0 ? names(missing) : "the other ranks");
      if (now >= deadline && place_.rank == 0)
        fail(ExitCode::kTopology, "[parallel] {} of {} ranks did not arrive within {:g} s: {}",
             missing.size(), place_.num_ranks, join_s_, fmt::join(missing, ", "));
      if (now >= deadline)
        fail(ExitCode::kTopology, "[parallel] rank 0 has not said within {:g} s that all ranks are there",
             join_s_);
    } catch (const Error& error) {
      throw monitor_->abort(error);
    }
    if (now < next_line || place_.rank != 0) continue;
    next_line = now + kNextLine;
    const int64_t dropped = listening_->num_turned_away();
    say(fmt::format("[ranks] waiting for {} of {}; gives up in {:.0f} s{}", names(missing), place_.num_ranks,
                    std::chrono::duration<double>(deadline - now).count(),
                    dropped == 0 ? "" : fmt::format(". {} clients did not know the token", dropped)));
  }
  if (const auto cause = monitor_->cause()) throw Error(cause->text, cause->code);
}

void MetPeers::check_stop(const std::string& waiting_for) {
  const int signal = options_.stop == nullptr ? 0 : options_.stop->load();
  if (signal == 0) return;
  const char* name = sigabbrev_np(signal);
  fail(static_cast<ExitCode>(128 + signal), "[ranks] stopped by SIG{} while rank {} was waiting for {}",
       name == nullptr ? std::to_string(signal) : name, place_.rank, waiting_for);
}

void MetPeers::start_listening(Socket listener) {
  register_secret(token_);
  if (place_.num_ranks == 1) return;
  ListenerCalls calls;
  calls.judge = [this](const RankClaim& claim) { return judge(claim); };
  calls.admit = [this](Socket socket, const RankClaim& claim) {
    if (claim.purpose == kJoin)
      root_->admit(std::move(socket));
    else
      arrived_.put(claim.purpose, claim.rank, std::move(socket));
  };
  listening_ = std::make_unique<Listener>(std::move(listener), token_, std::move(calls));
}

/// Returns the reason why a client that knows the token cannot belong to this run. An objection to a rank
/// that joins stops all ranks.
std::optional<std::string> MetPeers::objection(const RankClaim& claim) const {
  if (claim.version != kProtocolVersion)
    return fmt::format(
        "[ranks] rank {} speaks version {} of the protocol between ranks, rank {} speaks {}: start all "
        "ranks with the same build of Tycho",
        claim.rank, claim.version, place_.rank, kProtocolVersion);
  if (claim.num_ranks != place_.num_ranks)
    return fmt::format("[ranks] rank {} was started as one of {} ranks, rank {} as one of {}", claim.rank,
                       claim.num_ranks, place_.rank, place_.num_ranks);
  return std::nullopt;
}

HandshakeVerdict MetPeers::judge(const RankClaim& claim) {
  const bool joins = claim.purpose == kJoin;
  if (claim.to_rank != place_.rank || claim.rank < 0 || claim.rank == place_.rank ||
      (joins && place_.rank != 0))
    return {Answer::kRefused,
            fmt::format("[ranks] rank {} does not expect rank {}", place_.rank, claim.rank)};
  const std::string world = monitor_->world();
  if (!joins && world.empty()) return {Answer::kLater, "the ranks have not met yet"};
  if (claim.run != (joins ? hash_hex(place_.job) : world_name(place_, world)))
    return {Answer::kRefused,
            fmt::format("[ranks] rank {} belongs to another job than rank {}, or to an earlier start "
                        "of it",
                        claim.rank, place_.rank)};
  if (const auto text = objection(claim)) {
    monitor_->break_world({claim.rank, ExitCode::kTopology, *text});
    return {Answer::kRefused, *text};
  }
  if (joins && monitor_->has_left(claim.rank)) return {Answer::kLater, "rank 0 has not started again yet"};
  if (claim.rank >= place_.num_ranks) return {Answer::kRefused, "[ranks] there is no such rank"};
  return {Answer::kWelcome, ""};
}

std::vector<Socket> MetPeers::connect(const std::string& purpose, const std::vector<int>& ranks) {
  const auto deadline = Clock::now() + seconds(options_.connect_s);
  const InCollective collective("connect " + purpose, *options_.progress);
  std::vector<Socket> sockets(ranks.size());
  // The higher rank calls the lower one, whose listener answers on its own thread: no order can deadlock two
  // ranks.
  for (const bool calls : {true, false})
    for (size_t i = 0; i < ranks.size(); ++i) {
      if (ranks[i] == place_.rank || (ranks[i] < place_.rank) != calls) continue;
      sockets[i] =
          calls ? call(ranks[i], kData + purpose, deadline) : await(ranks[i], kData + purpose, deadline);
      fcntl(sockets[i].fd(), F_SETFL, fcntl(sockets[i].fd(), F_GETFL) & ~O_NONBLOCK);
    }
  return sockets;
}

Socket MetPeers::call(int rank, const std::string& purpose, Clock::time_point deadline) {
  const RankClaim claim{.rank = place_.rank,
                        .num_ranks = place_.num_ranks,
                        .to_rank = rank,
                        .run = world_name(place_, monitor_->world()),
                        .purpose = purpose};
  const Member member = monitor_->members().at(static_cast<size_t>(rank));
  const Endpoint endpoint = rank == 0 ? rank_0_ : numeric_endpoint(member.address, member.port);
  const auto gives_up = [this] { return is_broken(); };
  milliseconds pause = kFirstPause;
  auto next_line = Clock::now() + kFirstLine;
  const auto no_route_deadline = std::min(deadline, Clock::now() + seconds(options_.no_route_s));
  while (true) {
    DialResult result = dial(endpoint, token_, claim, kDial, gives_up);
    if (result.socket.is_open()) return std::move(result.socket);
    if (result.how == DialResult::How::kRefused) throw abort(Error(result.why, ExitCode::kTopology));
    const auto now = Clock::now();
    const auto until = result.has_no_route ? no_route_deadline : deadline;
    // No rank is lost: the network has no route to it, nor will it have one later. abort() tells the others.
    if (!is_broken() && result.has_no_route && now >= until)
      throw abort(Error(fmt::format("[ranks] rank {} cannot connect to {}: {}{}", place_.rank,
                                    endpoint.text(), result.why, kNoRouteAdvice),
                        ExitCode::kTopology));
    if (is_broken() || now >= until)
      throw why_broken(
          fmt::format("rank {} cannot connect to {}: {}", place_.rank, endpoint.text(), result.why), {rank});
    if (now >= next_line) {
      say(fmt::format("[ranks] rank {} waits for rank {} at {}: {}; gives up in {:.0f} s", place_.rank, rank,
                      endpoint.text(), result.why, std::chrono::duration<double>(until - now).count()));
      next_line = now + kNextLine;
    }
    std::this_thread::sleep_for(pause);
    pause = std::min(2 * pause, kLongestPause);
  }
}

Socket MetPeers::await(int rank, const std::string& purpose, Clock::time_point deadline) {
  while (true) {
    Socket socket = arrived_.take(purpose, rank, kLook);
    if (socket.is_open()) return socket;
    if (is_broken() || Clock::now() >= deadline)
      throw why_broken(fmt::format("it has not connected to rank {}", place_.rank), {rank});
  }
}

}  // namespace

std::unique_ptr<Peers> rendezvous(const RankInfo& place, const MeetOptions& options) {
  return std::make_unique<MetPeers>(place, options);
}

}  // namespace tycho
