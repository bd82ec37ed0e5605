// Requests and answers, servers that say no, hang or are not there, and a request to stop.
#include "trainer/http/http_exchange.h"

#include <gtest/gtest.h>

#include <thread>

#include "tests/trainer/base/temp_dir.h"
#include "tests/trainer/data/storage/http_server.h"
#include "tests/trainer/rendezvous/reserved_port.h"

namespace tycho {
namespace {

using testing::HttpServer;
using testing::SeenRequest;
using testing::ServerReply;

TEST(HttpExchange, SendsItsBodyAndHeadersAndReturnsTheAnswer) {
  const TempDir dir;
  HttpServer server(dir.path());
  server.set_fault([](const SeenRequest& request) { return ServerReply{200, "got " + request.body}; });
  const std::string body(200'000, 'x');
  const HttpAnswer answer = http_exchange(
      {.method = "POST", .url = server.url() + "/a?b=c", .headers = {"X-One: two"}, .body = body});
  EXPECT_EQ(answer.status, 200);
  EXPECT_EQ(answer.body, "got " + body);
  const SeenRequest seen = server.requests().at(0);
  EXPECT_EQ(seen.method, "POST");
  EXPECT_EQ(seen.path, "/a?b=c");
  EXPECT_EQ(seen.headers.at("x-one"), "two");
  EXPECT_EQ(seen.headers.count("expect"), 0u);
}

TEST(HttpExchange, ReturnsRefusalsWithTheirTextAndHowLongToWait) {
  const TempDir dir;
  HttpServer server(dir.path());
  server.set_fault([](const SeenRequest&) { return ServerReply{429, "slowly", {"Retry-After: 7"}}; });
  const HttpAnswer answer = http_exchange({.url = server.url() + "/"});
  EXPECT_EQ(answer.status, 429);
  EXPECT_EQ(answer.body, "slowly");
  EXPECT_EQ(answer.wait_s, 7);
}

TEST(HttpExchange, ReturnsTheHeadersAndNoBodyOfHead) {
  const TempDir dir;
  HttpServer server(dir.path());
  server.set_fault([](const SeenRequest&) {
    return ServerReply{302, "there", {"Location: http://127.0.0.1:1/", "X-Linked-Size: 12"}};
  });
  const HttpAnswer answer = http_exchange({.method = "HEAD", .url = server.url() + "/"});
  EXPECT_EQ(answer.status, 302);
  EXPECT_EQ(answer.body, "");
  EXPECT_EQ(answer.header("location"), "http://127.0.0.1:1/");
  EXPECT_EQ(answer.header("x-linked-size"), "12");
  EXPECT_EQ(answer.header("x-other"), "");
}

TEST(HttpExchange, TellsCertificatesThatAreNotTrustedFromAServerThatIsNotThere) {
  const TempDir dir;
  HttpServer server(dir.path());
  const std::string url = "https" + server.url().substr(4);
  const HttpAnswer untrusted = http_exchange({.url = url + "/", .ca_file = dir / "none.pem"});
  EXPECT_EQ(untrusted.status, 0);
  EXPECT_TRUE(untrusted.is_untrusted && !untrusted.may_pass()) << untrusted.problem;
  EXPECT_NE(untrusted.problem.find("none.pem: name another file in CURL_CA_BUNDLE"), std::string::npos)
      << untrusted.problem;
  const HttpAnswer absent = http_exchange({.url = "http://127.0.0.1:1/"});
  EXPECT_TRUE(!absent.is_untrusted && absent.may_pass());
}

TEST(HttpExchange, KeepsItsConnectionForTheNextOne) {
  const TempDir dir;
  HttpServer server(dir.path());
  server.set_fault([](const SeenRequest& request) { return ServerReply{200, request.method}; });
  for (const std::string method : {"GET", "HEAD", "PUT", "GET"})
    EXPECT_EQ(http_exchange({.method = method, .url = server.url() + "/"}).body,
              method == "HEAD" ? "" : method);
  EXPECT_EQ(server.num_connections(), 1);
}

TEST(HttpExchange, WaitsOnlyWhileBytesMove) {
  const TempDir dir;
  HttpServer server(dir.path());
  server.set_fault(
      [](const SeenRequest&) { return ServerReply{.status = 200, .body = "late", .hang_s = 60}; });
  const HttpAnswer hung = http_exchange({.url = server.url() + "/", .timeout_s = 0, .stall_s = 1});
  EXPECT_EQ(hung.status, 0);
  EXPECT_EQ(hung.problem, "no answer in 1 s");
  EXPECT_EQ(hung.headers.size(), 0u);
}

TEST(HttpExchange, DoesNotFollowRedirects) {
  const TempDir dir;
  HttpServer server(dir.path());
  server.set_fault([](const SeenRequest&) {
    return ServerReply{302, "there", {"Location: http://127.0.0.1:1/"}};
  });
  EXPECT_EQ(http_exchange({.url = server.url() + "/"}).status, 302);
}

TEST(HttpExchange, SaysWhyThereIsNoAnswer) {
  const ReservedPort nobody;
  const HttpAnswer refused =
      http_exchange({.url = "http://127.0.0.1:" + std::to_string(nobody.number()) + "/"});
  EXPECT_EQ(refused.status, 0);
  EXPECT_NE(refused.problem.find("connect"), std::string::npos) << refused.problem;
  const TempDir dir;
  HttpServer server(dir.path());
  server.set_fault(
      [](const SeenRequest&) { return ServerReply{.status = 200, .body = "late", .hang_s = 60}; });
  const HttpAnswer hung = http_exchange({.url = server.url() + "/", .timeout_s = 0.2});
  EXPECT_EQ(hung.status, 0);
  EXPECT_EQ(hung.problem, "no answer in 0.2 s");
  server.set_fault([](const SeenRequest&) { return ServerReply{200, std::string(5 << 20, 'x')}; });
  EXPECT_EQ(http_exchange({.url = server.url() + "/"}).problem, "the answer is longer than 4194304 bytes");
  const HttpAnswer longer = http_exchange({.url = server.url() + "/", .most_body_bytes = 8 << 20});
  EXPECT_EQ(longer.body.size(), size_t{5 << 20});
}

TEST(HttpExchange, EndsWhenCancelled) {
  const TempDir dir;
  HttpServer server(dir.path());
  std::stop_source stop;
  server.set_fault([&](const SeenRequest&) {
    stop.request_stop();
    return ServerReply{.status = 200, .body = "late", .hang_s = 60};
  });
  EXPECT_EQ(http_exchange({.url = server.url() + "/", .timeout_s = 600}, stop.get_token()).problem,
            "stopped");
  EXPECT_EQ(http_exchange({.url = server.url() + "/"}, stop.get_token()).problem, "stopped");
  EXPECT_EQ(server.requests().size(), 1u);
}

}  // namespace
}  // namespace tycho
