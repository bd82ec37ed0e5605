// A web server with one page, /metrics, for Prometheus.
#pragma once
#include <memory>
#include <string>

namespace tycho {

/// Limits for clients.
struct EndpointLimits {
  /// Open connections. A further one replaces the oldest of the address that has most, so that a well-behaved
  /// client is served during a flood.
  int connections = 64;
  double client_s = 5;       // from a client's first byte to the last byte of its answer
  int head_bytes = 8 << 10;  // head of a request
};

/// Answers GET /metrics, and nothing else, on a thread of its own. Ends with the object.
class MetricsEndpoint {
 public:
  /// `host` is a numeric address, IPv4 or IPv6. `port` is 0 for any free port. Throws Error (kStorage) when
  /// it cannot listen there.
  MetricsEndpoint(const std::string& host, int port, EndpointLimits limits = {});
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  int port() const;
  /// Sets the page to serve. Callable from any thread.
  void set_text(std::string text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tycho
