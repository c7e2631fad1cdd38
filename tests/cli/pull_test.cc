// sluice pull against a server on the loopback.
#include <gtest/gtest.h>

#include <cstdlib>

#include "src/base/random.h"
#include "tests/base/temp_folder.h"
#include "tests/cli/loopback_server.h"
#include "tests/cli/run_sluice.h"
#include "tests/file/small_gguf.h"

namespace sluice {
namespace {

std::string ModelBytes() {
  const SmallGguf small;
  const std::vector<uint8_t> bytes = small.Bytes();
  std::string text(bytes.begin(), bytes.end());
  text.resize(500000);  // bytes behind the last tensor are allowed
  for (size_t i = bytes.size(); i < text.size(); ++i)
    text[i] = static_cast<char>(RandomBits(1, 0, i));
  return text;
}

// A server's usual answer: the whole file, or the tail that a Range asks for.
HttpResponse ServeFile(const HttpRequest& request, const std::string& file,
                       const std::string& tag) {
  HttpResponse response;
  response.headers = "ETag: " + tag + "\r\n";
  const std::string range = request.Header("Range");
  const bool same = request.Header("If-Range").empty() || request.Header("If-Range") == tag;
  if (range.empty() || !same) {
    response.body = file;
    return response;
  }
  const size_t from = std::strtoull(range.c_str() + std::strlen("bytes="), nullptr, 10);
  if (from >= file.size()) {
    response.code = 416;
    return response;
  }
  response.code = 206;
  response.headers += "Content-Range: bytes " + std::to_string(from) + "-" +
                      std::to_string(file.size() - 1) + "/" + std::to_string(file.size()) + "\r\n";
  response.body = file.substr(from);
  return response;
}

class PullTest : public testing::Test {
 protected:
  ProgramResult Pull(std::vector<std::string> arguments, const Environment& more = {}) {
    Environment environment = more;
    environment["SLUICE_MODELS"] = folder_.path("models");
    environment["no_proxy"] = "*";
    arguments.insert(arguments.begin(), "pull");
    return RunSluice(arguments, environment);
  }
  std::string Saved(const std::string& name = "m.gguf") {
    const std::vector<uint8_t> bytes = ReadFile(folder_.path("models/" + name));
    return std::string(bytes.begin(), bytes.end());
  }
  size_t Files() {
    const std::filesystem::directory_iterator begin(folder_.path("models")), end;
    return static_cast<size_t>(std::distance(begin, end));
  }

  const TempFolder folder_;
  const std::string file_ = ModelBytes();
};

TEST_F(PullTest, FetchesAFileOnce) {
  LoopbackServer server([&](const HttpRequest& r) { return ServeFile(r, file_, "\"a\""); });
  const std::string url = server.url("/some/m.gguf?download=true");
  const ProgramResult result = Pull({url});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(result.out, folder_.path("models/m.gguf") + "\n");
  EXPECT_EQ(result.err, "");  // no progress bar on a pipe
  EXPECT_EQ(Saved(), file_);
  EXPECT_EQ(Files(), 1u);
  EXPECT_EQ(Pull({url}).exit_code, 0);
  EXPECT_EQ(server.requests().size(), 1u);
}

TEST_F(PullTest, TellsProgramsHowFarItIs) {
  LoopbackServer server([&](const HttpRequest& r) { return ServeFile(r, file_, "\"a\""); });
  const ProgramResult result = Pull({"--progress", "json", server.url("/m.gguf")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  const std::string bytes = std::to_string(file_.size());
  const std::string last =
      "{\"title\":\"m.gguf\",\"completed\":" + bytes + ",\"total\":" + bytes + "}\n";
  EXPECT_TRUE(result.err.ends_with(last)) << result.err;
  EXPECT_EQ(Pull({"--progress", "xml", server.url("/m.gguf")}).exit_code, 2);
}

TEST_F(PullTest, GoesOnAfterABrokenLine) {
  std::atomic<int> n{0};
  LoopbackServer server([&](const HttpRequest& r) {
    HttpResponse response = ServeFile(r, file_, "\"a\"");
    if (n++ == 0) response.cut = 200000;
    return response;
  });
  const ProgramResult result = Pull({server.url("/m.gguf")});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Saved(), file_);
  ASSERT_EQ(server.requests().size(), 2u);
  EXPECT_EQ(server.requests()[1].Header("Range"), "bytes=200000-");
  EXPECT_EQ(server.requests()[1].Header("If-Range"), "\"a\"");
}

TEST_F(PullTest, AnotherRunGoesOn) {
  std::atomic<int> n{0};
  LoopbackServer server([&](const HttpRequest& r) {
    HttpResponse response = ServeFile(r, file_, "\"a\"");
    if (n == 0) response.cut = 300000;
    if (n == 1) response = HttpResponse{404, "", "gone", std::string::npos};
    ++n;
    return response;
  });
  EXPECT_TRUE(Pull({server.url("/m.gguf")}).IsOneLineError(1));
  EXPECT_FALSE(std::filesystem::exists(folder_.path("models/m.gguf")));
  EXPECT_EQ(Pull({server.url("/m.gguf")}).exit_code, 0);
  EXPECT_EQ(Saved(), file_);
  EXPECT_EQ(Files(), 1u);
  EXPECT_EQ(server.requests()[2].Header("Range"), "bytes=300000-");
}

TEST_F(PullTest, AChangedFileIsFetchedAnew) {
  std::atomic<int> n{0};
  std::string other = file_;
  other[400000] ^= 1;
  LoopbackServer server([&](const HttpRequest& r) {
    HttpResponse response = n == 0 ? ServeFile(r, file_, "\"a\"") : ServeFile(r, other, "\"b\"");
    if (n++ == 0) response.cut = 450000;
    return response;
  });
  EXPECT_EQ(Pull({server.url("/m.gguf")}).exit_code, 0);
  EXPECT_EQ(Saved(), other);
}

TEST_F(PullTest, WithoutATagNothingIsContinued) {
  for (const char* tag : {"W/\"weak\"", ""}) {
    std::filesystem::remove_all(folder_.path("models"));
    std::atomic<int> n{0};
    LoopbackServer server([&](const HttpRequest& r) {
      HttpResponse response = ServeFile(r, file_, tag);
      if (n++ == 0) response.cut = 1000;
      return response;
    });
    EXPECT_EQ(Pull({server.url("/m.gguf")}).exit_code, 0);
    EXPECT_EQ(Saved(), file_);
    ASSERT_EQ(server.requests().size(), 2u);
    EXPECT_EQ(server.requests()[1].Header("Range"), "");
  }
}

TEST_F(PullTest, ChecksTheSum) {
  LoopbackServer server([&](const HttpRequest& r) { return ServeFile(r, "GGUF\x03", "\"a\""); });
  const ProgramResult wrong = Pull({server.url("/m.gguf"), "--sha256", std::string(64, 'A')});
  EXPECT_TRUE(wrong.IsOneLineError(1)) << wrong.err;
  EXPECT_NE(wrong.err.find("expected SHA-256 " + std::string(64, 'a')), std::string::npos);
  EXPECT_EQ(Files(), 0u);
  EXPECT_TRUE(Pull({server.url("/m.gguf"), "--sha256", "abc"}).IsOneLineError(2));
}

TEST_F(PullTest, AcceptsTheRightSum) {
  GgufWriter writer;  // 24 bytes of header and 8 of padding: a sum anyone can check
  const std::vector<uint8_t> bytes = writer.Bytes();
  LoopbackServer server([&](const HttpRequest& r) {
    return ServeFile(r, std::string(bytes.begin(), bytes.end()), "\"a\"");
  });
  const ProgramResult result =
      Pull({server.url("/m.gguf"), "--sha256",
            "a3718c7940c34ff91a906d0758debb656aed43d1aa8b23b99f67cb106cdbc881"});
  EXPECT_EQ(result.exit_code, 0) << result.err;
}

TEST_F(PullTest, AWebPageIsNoModel) {
  LoopbackServer server([&](const HttpRequest&) {
    return HttpResponse{200, "", "<!DOCTYPE html><html>please log in</html>", std::string::npos};
  });
  const ProgramResult result = Pull({server.url("/m.gguf")});
  EXPECT_TRUE(result.IsOneLineError(1)) << result.err;
  EXPECT_NE(result.err.find("web page"), std::string::npos);
  EXPECT_EQ(Files(), 0u);
}

TEST_F(PullTest, HttpErrorsLeaveNothing) {
  LoopbackServer server(
      [](const HttpRequest&) { return HttpResponse{404, "", "not here", std::string::npos}; });
  const ProgramResult result = Pull({server.url("/m.gguf")});
  EXPECT_TRUE(result.IsOneLineError(1)) << result.err;
  EXPECT_NE(result.err.find("404"), std::string::npos);
  EXPECT_EQ(Files(), 0u);
}

TEST_F(PullTest, RefusesNamesAndAddressesItCannotUse) {
  for (const char* what :
       {"http://127.0.0.1:1/", "http://127.0.0.1:1/x.bin", "http://127.0.0.1:1/..%2fx.gguf",
        "http://127.0.0.1:1/.gguf", "ftp://127.0.0.1/x.gguf", "file:///etc/passwd", "no-such-model",
        "hf:", "hf:owner", "hf:../repo", "hf:owner/..", "hf:owner/re po", "hf:owner/repo:a/b"}) {
    const ProgramResult result = Pull({what});
    EXPECT_TRUE(result.IsOneLineError(2)) << what << ": " << result.err;
  }
}

TEST_F(PullTest, TokenStaysWithItsHost) {
  std::string elsewhere;
  LoopbackServer server([&](const HttpRequest& r) {
    if (r.path.starts_with("/api/")) {
      return HttpResponse{200, "", R"([{"type":"file","path":"m-q4_k_m.gguf","size":5}])",
                          std::string::npos};
    }
    if (r.path.starts_with("/o/r/")) {
      return HttpResponse{302, "Location: " + elsewhere + "\r\n", "", std::string::npos};
    }
    return ServeFile(r, file_, "\"a\"");
  });
  elsewhere = server.url("/cdn/file", "localhost");
  const ProgramResult result =
      Pull({"hf:o/r"}, {{"SLUICE_HF_ENDPOINT", server.url("")}, {"HF_TOKEN", "secret"}});
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Saved("m-q4_k_m.gguf"), file_);
  ASSERT_EQ(server.requests().size(), 3u);
  EXPECT_EQ(server.requests()[0].Header("Authorization"), "Bearer secret");
  EXPECT_EQ(server.requests()[1].Header("Authorization"), "Bearer secret");
  EXPECT_EQ(server.requests()[2].Header("Authorization"), "");
}

// ---- hf: ----------------------------------------------------------------------------------------

class HuggingFaceTest : public PullTest {
 protected:
  ProgramResult PullFrom(LoopbackServer& server, const std::string& what) {
    return Pull({what}, {{"SLUICE_HF_ENDPOINT", server.url("")}});
  }
  // Serves the listing, and for every file its name padded to a GGUF.
  HttpResponse Serve(const HttpRequest& request) {
    if (request.path == "/api/models/own/rep/tree/main?recursive=true") {
      return HttpResponse{200, "", listing_, std::string::npos};
    }
    return ServeFile(request, file_, "\"a\"");
  }

  std::string listing_ = R"([
    {"type":"directory","path":"deep"},
    {"type":"file","path":"README.md","size":3},
    {"type":"file","path":"mmproj-F16.gguf","size":3},
    {"type":"file","path":"m-Q4_K.gguf","size":500000},
    {"type":"file","path":"m-Q4_K_M.gguf","size":500000},
    {"type":"file","path":"deep/m x-Q8_0.gguf","size":1},
    {"type":"file","path":"deep/m-Q8_0-00001-of-00002.gguf","size":500000},
    {"type":"file","path":"deep/m-Q8_0-00002-of-00002.gguf","size":500000},
    {"type":"file","path":7}, 9, null, {"path":"bad-Q2_K.gguf","size":"x","lfs":3}])";
};

TEST_F(HuggingFaceTest, PicksTheQuantisation) {
  LoopbackServer server([&](const HttpRequest& r) { return Serve(r); });
  EXPECT_EQ(PullFrom(server, "hf:own/rep").exit_code, 0);
  EXPECT_EQ(Saved("m-Q4_K_M.gguf"), file_);
  EXPECT_EQ(PullFrom(server, "hf:own/rep:q4_k").exit_code, 0);
  EXPECT_EQ(Saved("m-Q4_K.gguf"), file_);
  EXPECT_EQ(PullFrom(server, "hf:own/rep:Q2_K").exit_code, 0);
}

TEST_F(HuggingFaceTest, FetchesAllPartsOfASplit) {
  LoopbackServer server([&](const HttpRequest& r) { return Serve(r); });
  const ProgramResult result = PullFrom(server, "hf:own/rep:q8_0");
  EXPECT_EQ(result.exit_code, 0) << result.err;
  EXPECT_EQ(Files(), 2u);
  EXPECT_EQ(Saved("m-Q8_0-00002-of-00002.gguf"), file_);
  EXPECT_EQ(server.requests()[1].path, "/own/rep/resolve/main/deep/m-Q8_0-00001-of-00002.gguf");
}

TEST_F(HuggingFaceTest, SaysWhatThereIs) {
  LoopbackServer server([&](const HttpRequest& r) { return Serve(r); });
  const ProgramResult result = PullFrom(server, "hf:own/rep:q6_k");
  EXPECT_TRUE(result.IsOneLineError(1)) << result.err;
  EXPECT_NE(result.err.find("m-q4_k_m"), std::string::npos);
  listing_ = "[]";
  EXPECT_NE(PullFrom(server, "hf:own/rep").err.find("no .gguf"), std::string::npos);
  listing_ = "{\"error\":[[[[";
  EXPECT_TRUE(PullFrom(server, "hf:own/rep").IsOneLineError(1));
}

TEST_F(HuggingFaceTest, ChecksTheSumOfTheListing) {
  listing_ = R"([{"path":"m.gguf","size":1,"lfs":{"oid":")" + std::string(64, '0') + "\"}}]";
  LoopbackServer server([&](const HttpRequest& r) { return Serve(r); });
  const ProgramResult result = PullFrom(server, "hf:own/rep");
  EXPECT_TRUE(result.IsOneLineError(1)) << result.err;
  EXPECT_NE(result.err.find("SHA-256"), std::string::npos);
  EXPECT_EQ(Files(), 0u);
}

}  // namespace
}  // namespace sluice
