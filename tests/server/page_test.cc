// The page through a real server: who gets it, with which headers, and that its bytes are the
// files of the source tree.
#include "src/server/page.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "tests/server/raw_client.h"

namespace sluice {
namespace {

constexpr char kBrowser[] =
    "Accept: text/html,application/xhtml+xml,application/xml;q=0.9,image/avif,*/*;q=0.8\r\n";

std::string ReadFile(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

class PageTest : public testing::Test {
 protected:
  PageTest() {
    HttpOptions options;
    options.ports = {0};
    options.api_keys = {"secret"};
    Route heartbeat;
    heartbeat.method = "GET";
    heartbeat.path = "/";
    heartbeat.access = Access::kOpen;
    heartbeat.handler = [](const std::shared_ptr<Exchange>& exchange) {
      exchange->Respond({200, "text/plain", "alive", {}});
    };
    server_ = std::make_unique<HttpServer>(options, nullptr);
    const Status started = server_->Start(WithPage({std::move(heartbeat)}));
    EXPECT_TRUE(started.ok()) << started.message();
    const std::string url = server_->addresses().at(0);
    port_ = static_cast<uint16_t>(std::stoi(url.substr(url.rfind(':') + 1)));
  }
  RawAnswer Ask(const std::string& method, const std::string& path, const std::string& headers) {
    RawClient client(port_);
    return client.Ask(method + " " + path + " HTTP/1.1\r\nHost: x\r\n" + headers + "\r\n",
                      method == "HEAD");
  }
  RawAnswer Get(const std::string& path, const std::string& headers = "") {
    return Ask("GET", path, headers);
  }

  std::unique_ptr<HttpServer> server_;
  uint16_t port_ = 0;
};

TEST(WantsPage, OnlyThoseWhoNameIt) {
  for (const char* accept :
       {"text/html", "TEXT/HTML", "application/json, text/html;q=0.1",
        "text/html ; charset=utf-8 ; q=0.001", " text/html,*/*;q=0.8", "a/b,\ttext/html"}) {
    EXPECT_TRUE(WantsPage(accept)) << accept;
  }
  for (const char* accept :
       {"", "*/*", "text/*", "text/plain", "text/htmlx", "text/html;q=0", "text/html;q=0.000",
        "text/html; Q=0 ,*/*", "application/xhtml+xml", ",", ";", "q=text/html"}) {
    EXPECT_FALSE(WantsPage(accept)) << accept;
  }
}

TEST_F(PageTest, BrowsersGetThePageOthersTheHeartbeat) {
  const RawAnswer page = Get("/", kBrowser);
  EXPECT_EQ(page.status, 200);
  EXPECT_EQ(page.Header("Content-Type"), "text/html; charset=utf-8");
  EXPECT_EQ(page.Header("Vary"), "Accept");
  EXPECT_TRUE(page.body.starts_with("<!doctype html>"));
  for (const char* accept : {"", "Accept: */*\r\n", "Accept: text/plain, */*\r\n",
                             "Accept: application/json\r\n", "Accept: text/html;q=0\r\n"}) {
    EXPECT_EQ(Get("/", accept).body, "alive") << accept;
  }
  const RawAnswer head = Ask("HEAD", "/", kBrowser);
  EXPECT_EQ(head.status, 200);
  EXPECT_EQ(head.Header("Content-Length"), std::to_string(page.body.size()));
  EXPECT_EQ(head.Header("ETag"), page.Header("ETag"));
  EXPECT_EQ(Ask("POST", "/", kBrowser).status, 405);
}

TEST_F(PageTest, FilesAreThoseOfTheSourceTree) {
  const std::filesystem::path folder = std::string(SLUICE_SOURCE_DIR) + "/src/server/page";
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(folder)) {
    names.push_back(entry.path().filename());
  }
  std::sort(names.begin(), names.end());
  std::vector<std::string> embedded;
  for (const PageFile& file : PageFiles()) embedded.emplace_back(file.name);
  EXPECT_EQ(embedded, names);
  for (const std::string& name : names) {
    const RawAnswer answer = Get("/page/" + name);
    EXPECT_EQ(answer.status, 200) << name;
    EXPECT_TRUE(answer.body == ReadFile(folder / name)) << name;
    EXPECT_NE(answer.Header("Content-Type"), "application/octet-stream") << name;
  }
  EXPECT_EQ(Get("/page/app.js").Header("Content-Type"), "text/javascript; charset=utf-8");
  for (const char* path : {"/page/nothing.js", "/page/..%2Fpage.cc", "/page", "/page/"}) {
    EXPECT_EQ(Get(path).status, 404) << path;
  }
}

TEST_F(PageTest, NothingFromElsewhereAndNothingInline) {
  for (const char* path : {"/", "/page/app.js", "/page/page.css"}) {
    const RawAnswer answer = Get(path, kBrowser);
    const std::string policy = answer.Header("Content-Security-Policy");
    EXPECT_TRUE(
        policy.starts_with("default-src 'none'; script-src 'self'; style-src 'self'; "
                           "connect-src 'self'; img-src 'self' data:; base-uri 'none'; "
                           "form-action 'none'; frame-ancestors 'none'"))
        << policy;
    EXPECT_EQ(policy.find("unsafe"), std::string::npos);
    EXPECT_EQ(answer.Header("X-Content-Type-Options"), "nosniff");
    EXPECT_EQ(answer.Header("Referrer-Policy"), "no-referrer");
  }
  for (const PageFile& file : PageFiles()) {
    for (const char* text : {"innerHTML", "insertAdjacentHTML", "document.write", " style=\"",
                             "eval(", "src=\"http", "href=\"http", "@import"}) {
      EXPECT_EQ(file.bytes.find(text), std::string_view::npos) << file.name << ": " << text;
    }
  }
}

TEST_F(PageTest, UnchangedFilesAreNotSentAgain) {
  const std::string tag = Get("/page/app.js").Header("ETag");
  EXPECT_EQ(tag.size(), 34u) << tag;
  EXPECT_NE(tag, Get("/page/page.css").Header("ETag"));
  for (const std::string& condition :
       {tag, "\"x\", " + tag, "W/" + tag, "\"x\",W/" + tag + ",\"y\"", std::string("*")}) {
    const RawAnswer same = Get("/page/app.js", "If-None-Match: " + condition + "\r\n");
    EXPECT_EQ(same.status, 304) << condition;
    EXPECT_EQ(same.Header("ETag"), tag);
    EXPECT_EQ(same.Header("Content-Length"), "");
  }
  for (const char* condition : {"\"x\"", "", "W/", "\""}) {
    EXPECT_EQ(Get("/page/app.js", std::string("If-None-Match: ") + condition + "\r\n").status, 200)
        << condition;
  }
  EXPECT_EQ(Get("/page/app.js").Header("Cache-Control"), "no-cache");
}

TEST_F(PageTest, NeedsNoKeyToAskForOne) {
  EXPECT_EQ(Get("/page/app.js").status, 200);
  EXPECT_EQ(Get("/", kBrowser).status, 200);
}

}  // namespace
}  // namespace sluice
