// The page for Prometheus: what is answered, what is refused, and clients that are slow or too many.
#include "trainer/loggers/metrics_endpoint.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstdint>
#include <memory>
#include <vector>

#include "trainer/base/error.h"

namespace tycho {
namespace {

/// A connection that the test writes to and reads from as it likes.
class PageClient {
 public:
  /// `from`: the last number of the address 127.0.0.x that it calls from.
  explicit PageClient(int port, int from = 1) : socket_(::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK - 1 + static_cast<uint32_t>(from));
    EXPECT_EQ(::bind(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address), 0);
    address.sin_port = htons(static_cast<uint16_t>(port));
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ = ::connect(socket_, reinterpret_cast<sockaddr*>(&address), sizeof address) == 0;
  }
  ~PageClient() { ::close(socket_); }
  PageClient(const PageClient&) = delete;
  bool connected() const { return connected_; }
  void send(const std::string& text) const { (void)::send(socket_, text.data(), text.size(), MSG_NOSIGNAL); }
  /// All until the server closes the connection.
  std::string read_all() const {
    std::string text;
    char piece[4096];
    for (ssize_t n = 0; (n = ::recv(socket_, piece, sizeof piece, 0)) > 0;)
      text.append(piece, static_cast<size_t>(n));
    return text;
  }

 private:
  int socket_;
  bool connected_ = false;
};

std::string answer_to(int port, const std::string& request) {
  const PageClient client(port);
  client.send(request);
  return client.read_all();
}

std::string first_line(const std::string& text) { return text.substr(0, text.find("\r\n")); }

const std::string kGet = "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n";

TEST(MetricsEndpoint, AnswersWithTheNewestText) {
  MetricsEndpoint endpoint("127.0.0.1", 0);
  endpoint.set_text("a 1\n");
  const std::string answer = answer_to(endpoint.port(), kGet);
  EXPECT_EQ(first_line(answer), "HTTP/1.1 200 OK");
  EXPECT_NE(answer.find("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\nContent-Length: 4\r\n"),
            std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\na 1\n")) << answer;
  std::string large(3 << 20, 'x');
  endpoint.set_text(large);
  EXPECT_TRUE(answer_to(endpoint.port(), kGet).ends_with(large));
  EXPECT_EQ(first_line(answer_to(endpoint.port(), "GET /metrics?x=y HTTP/1.0\r\n\r\n")), "HTTP/1.1 200 OK");
}

TEST(MetricsEndpoint, RefusesEverythingElse) {
  MetricsEndpoint endpoint("127.0.0.1", 0);
  const int port = endpoint.port();
  EXPECT_EQ(first_line(answer_to(port, "GET / HTTP/1.1\r\n\r\n")), "HTTP/1.1 404 Not Found");
  EXPECT_EQ(first_line(answer_to(port, "GET /metrics/../x HTTP/1.1\r\n\r\n")), "HTTP/1.1 404 Not Found");
  const std::string posted = answer_to(port, "POST /metrics HTTP/1.1\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(first_line(posted), "HTTP/1.1 405 Method Not Allowed");
  EXPECT_NE(posted.find("Allow: GET\r\n"), std::string::npos);
  EXPECT_EQ(first_line(answer_to(port, "nonsense\r\n\r\n")), "HTTP/1.1 400 Bad Request");
  EXPECT_EQ(first_line(answer_to(port, std::string(10'000, 'x'))),
            "HTTP/1.1 431 Request Header Fields Too Large");
}

TEST(MetricsEndpoint, SlowClientsAreCutOffAndDelayNothing) {
  // Two that never finish their request fill it; the third takes the place of one.
  MetricsEndpoint endpoint("127.0.0.1", 0, {.connections = 2, .client_s = 0.05});
  endpoint.set_text("a 1\n");
  const PageClient first(endpoint.port()), second(endpoint.port());
  first.send("GET /met");
  const PageClient third(endpoint.port());
  third.send(kGet);
  EXPECT_TRUE(third.read_all().ends_with("a 1\n"));
  EXPECT_EQ(first.read_all(), "");
  EXPECT_EQ(second.read_all(), "");
}

TEST(MetricsEndpoint, AFloodStarvesNobody) {
  MetricsEndpoint endpoint("127.0.0.1", 0, {.connections = 8, .client_s = 600});
  endpoint.set_text("a 1\n");
  std::vector<std::unique_ptr<PageClient>> flood;
  const auto add = [&](int count, const std::string& request) {
    for (int i = 0; i < count; ++i) {
      flood.push_back(std::make_unique<PageClient>(endpoint.port()));
      flood.back()->send(request);
    }
  };
  const PageClient other(endpoint.port(), 2);
  other.send("GET /met");
  add(100, "");
  add(100, "GET");
  // From the same address, and from another one that is not as quick.
  EXPECT_TRUE(answer_to(endpoint.port(), kGet).ends_with("a 1\n"));
  other.send("rics HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(other.read_all().ends_with("a 1\n"));
  // Answers that nobody reads hold nothing up either.
  endpoint.set_text(std::string(8 << 20, 'x'));
  add(20, kGet);
  EXPECT_TRUE(answer_to(endpoint.port(), kGet).ends_with("xx"));
}

TEST(MetricsEndpoint, EndsWhileClientsAreConnected) {
  auto endpoint = std::make_unique<MetricsEndpoint>("127.0.0.1", 0, EndpointLimits{.client_s = 600});
  const PageClient client(endpoint->port());
  client.send("GET");
  endpoint.reset();
  EXPECT_EQ(client.read_all(), "");
}

TEST(MetricsEndpoint, SaysWhyItCannotListen) {
  const MetricsEndpoint first("127.0.0.1", 0);
  try {
    MetricsEndpoint second("127.0.0.1", first.port());
    FAIL() << "a second one on the same port";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::kStorage);
    EXPECT_EQ(std::string(error.what()), "[prometheus] cannot listen on port " +
                                             std::to_string(first.port()) +
                                             " of 127.0.0.1: Address already in use; give another port");
  }
  EXPECT_THROW(MetricsEndpoint("localhost", 0), Error);
}

}  // namespace
}  // namespace tycho
