// A web server with one page, /metrics, for Prometheus.
#pragma once
#include <memory>
#include <string>

namespace tycho {

/// How much clients may ask of it.
struct EndpointLimits {
  /// At once. A further one takes the place of the oldest of the address that has most, so that one which
  /// asks and reads its answer at once is served beside a flood.
  int connections = 64;
  double client_s = 5;       // from the first byte of a client to the last of its answer
  int head_bytes = 8 << 10;  // of a request
};

/// Answers on a thread of its own, GET /metrics alone. Ends with the object.
class MetricsEndpoint {
 public:
  /// `host`: a numeric address, of IPv4 or IPv6. `port` 0: any that is free. Throws Error (kStorage) when it
  /// cannot listen there.
  MetricsEndpoint(const std::string& host, int port, EndpointLimits limits = {});
  ~MetricsEndpoint();
  MetricsEndpoint(const MetricsEndpoint&) = delete;
  int port() const;
  /// The page from now on. From any thread.
  void set_text(std::string text);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace tycho
