#include "src/file/panel_file.h"

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cmath>
#include <fstream>
#include <thread>

#include "src/base/atomic_file.h"
#include "src/base/random.h"
#include "src/file/panel_rows.h"
#include "tests/base/temp_folder.h"
#include "tests/file/small_gguf.h"

namespace sluice {
namespace {

using Bytes = std::vector<uint8_t>;

void Serial(size_t n, const std::function<void(size_t)>& f) {
  for (size_t i = n; i-- > 0;) f(i);  // an order that no caller can lean on
}

void FourThreads(size_t n, const std::function<void(size_t)>& f) {
  std::atomic<size_t> next{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&] {
      for (size_t i; (i = next++) < n;) f(i);
    });
  }
  for (std::thread& thread : threads) thread.join();
}

// A GGUF with one matrix [3 experts][21 rows][512] of every format, random bytes.
class PanelFileTest : public testing::Test {
 protected:
  PanelFileTest() {
    setenv("SLUICE_CACHE", folder_.path("cache").c_str(), 1);
    gguf_ = WriteModel("model.gguf", 1);
    for (const GgufTensor& tensor : gguf_->tensors()) all_.push_back(&tensor);
  }
  ~PanelFileTest() override { unsetenv("SLUICE_CACHE"); }

  std::unique_ptr<Gguf> WriteModel(const std::string& name, uint64_t seed) {
    GgufWriter writer;
    writer.AddString("general.architecture", "llama");
    std::vector<Bytes> data;
    for (const Format* format : Formats()) {
      const uint64_t shape[] = {512, 21, 3};
      Bytes bytes(format->RowBytes(512) * 21 * 3);
      for (size_t i = 0; i < bytes.size(); ++i) {
        bytes[i] = static_cast<uint8_t>(RandomBits(seed, format->gguf_type, i));
      }
      data.push_back(std::move(bytes));
      writer.AddTensor(std::string(format->name) + ".weight", format->gguf_type, shape,
                       data.back());
    }
    EXPECT_TRUE(writer.Write(folder_.path(name)).ok());
    auto gguf = Gguf::Open(folder_.path(name));
    EXPECT_TRUE(gguf.ok()) << gguf.status().message();
    return *std::move(gguf);
  }

  Status Write(const PanelFile::ParallelFor& parallel_for = Serial) {
    return PanelFile::Write(*gguf_, all_, parallel_for, nullptr);
  }
  std::string Path() { return PanelFile::PathOf(*gguf_).value(); }
  StatusCode OpenCode() { return PanelFile::Open(*gguf_).status().code(); }

  const TempFolder folder_;
  std::unique_ptr<Gguf> gguf_;
  std::vector<const GgufTensor*> all_;
};

// Panels in `panels` turn back into the tensor's rows; rows past the end are zero.
void ExpectLossless(const GgufTensor& tensor, const uint8_t* panels) {
  const PanelShape shape = PanelShapeOf(tensor).value();
  const Format& format = *tensor.format;
  const size_t row_bytes = format.RowBytes(shape.k);
  const Bytes zero(row_bytes, 0);
  Bytes back(kPanelRows * row_bytes);
  uint8_t* rows[kPanelRows];
  for (size_t r = 0; r < kPanelRows; ++r) rows[r] = back.data() + r * row_bytes;
  for (size_t expert = 0; expert < shape.experts; ++expert) {
    for (size_t row = 0; row < shape.panels_per_expert * kPanelRows; ++row) {
      if (row % kPanelRows == 0) {
        const size_t panel = expert * shape.panels_per_expert + row / kPanelRows;
        format.from_panel(panels + panel * shape.panel_bytes, shape.k / format.block_values, rows);
      }
      const uint8_t* expected =
          row < shape.rows ? tensor.data + (expert * shape.rows + row) * row_bytes : zero.data();
      ASSERT_EQ(std::memcmp(rows[row % kPanelRows], expected, row_bytes), 0)
          << tensor.name << " expert " << expert << " row " << row;
    }
  }
}

TEST_F(PanelFileTest, HoldsEveryFormatLosslessly) {
  EXPECT_EQ(OpenCode(), StatusCode::kNotFound);
  ASSERT_TRUE(Write().ok());
  const auto panels = PanelFile::Open(*gguf_);
  ASSERT_TRUE(panels.ok()) << panels.status().message();
  size_t converted = 0;
  for (const GgufTensor& tensor : gguf_->tensors()) {
    const uint8_t* data = (*panels)->Find(tensor.name);
    if (tensor.format->panel_block_bytes == 0) {
      EXPECT_EQ(data, nullptr) << tensor.name;
      continue;
    }
    ++converted;
    ASSERT_NE(data, nullptr) << tensor.name;
    EXPECT_EQ(reinterpret_cast<uintptr_t>(data) % 4096, 0u);
    ExpectLossless(tensor, data);
  }
  EXPECT_GE(converted, 8u);
  EXPECT_EQ((*panels)->Find("none"), nullptr);
  EXPECT_TRUE((*panels)->Verify(Serial).ok());
}

TEST_F(PanelFileTest, BytesDoNotDependOnThreads) {
  ASSERT_TRUE(Write(Serial).ok());
  const Bytes serial = ReadFile(Path());
  ASSERT_TRUE(Write(FourThreads).ok());
  EXPECT_EQ(ReadFile(Path()), serial);
  const std::filesystem::path folder(Path());
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder.parent_path()), {}), 1);
}

TEST_F(PanelFileTest, ProgressEndsAtTheTotal) {
  std::atomic<uint64_t> last{0}, all{0};
  const auto progress = [&](uint64_t done, uint64_t total) {
    last = std::max(last.load(), done);
    all = total;
    return true;
  };
  ASSERT_TRUE(PanelFile::Write(*gguf_, all_, Serial, progress).ok());
  uint64_t expected = 0;
  for (const GgufTensor* tensor : all_) {
    const auto shape = PanelShapeOf(*tensor);
    if (shape) expected += shape->bytes();
  }
  EXPECT_EQ(last, expected);
  EXPECT_EQ(all, expected);
}

TEST_F(PanelFileTest, GivesUpWhenToldAndLeavesNothing) {
  for (const bool at_once : {true, false}) {
    const auto give_up = [&](uint64_t done, uint64_t) { return !at_once && done == 0; };
    EXPECT_EQ(PanelFile::Write(*gguf_, all_, FourThreads, give_up).code(), StatusCode::kCancelled);
  }
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path("cache/panels")), {}),
            0);
}

TEST_F(PanelFileTest, RemovesWhatKilledWritersLeft) {
  std::filesystem::create_directories(folder_.path("cache/panels"));
  const pid_t child = fork();
  if (child == 0) {  // killed in the midst of writing
    if (!AtomicFile::Create(folder_.path("cache/panels/x.panels")).ok()) _exit(1);
    (void)new auto(AtomicFile::Create(folder_.path("cache/panels/y.panels")));
    raise(SIGKILL);
  }
  int status = 0;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  ASSERT_TRUE(WIFSIGNALED(status));
  const auto files = [&] {
    return std::distance(std::filesystem::directory_iterator(folder_.path("cache/panels")), {});
  };
  ASSERT_EQ(files(), 1);
  // Kept: that of a process that lives, and what only looks like one.
  const auto mine = AtomicFile::Create(folder_.path("cache/panels/z.panels"));
  ASSERT_TRUE(mine.ok());
  WriteFile(folder_.path("cache/panels/notes.tmp"), Pattern(1, 0));
  ASSERT_TRUE(Write().ok());
  EXPECT_EQ(files(), 3);
  EXPECT_TRUE((*mine)->Commit().ok());
}

TEST_F(PanelFileTest, HoldsOnlyWhatWasAskedFor) {
  const GgufTensor* one[] = {gguf_->FindTensor("Q4_0.weight"), gguf_->FindTensor("Q4_0.weight")};
  ASSERT_TRUE(PanelFile::Write(*gguf_, one, Serial, nullptr).ok());
  const auto panels = PanelFile::Open(*gguf_);
  ASSERT_TRUE(panels.ok()) << panels.status().message();
  EXPECT_NE((*panels)->Find("Q4_0.weight"), nullptr);
  EXPECT_EQ((*panels)->Find("Q8_0.weight"), nullptr);
}

// Sets bytes [at, at + 8) of a file and puts its time of modification back.
void EditKeepingTheTime(const std::string& path, uint64_t at) {
  const auto time = std::filesystem::last_write_time(path);
  std::fstream(path, std::ios::in | std::ios::out | std::ios::binary)
      .seekp(static_cast<std::streamoff>(at))
      .write("\x5a\xa5\x5a\xa5\x5a\xa5\x5a\xa5", 8);
  std::filesystem::last_write_time(path, time);
}

std::unique_ptr<Gguf> OpenModel(const std::string& path) {
  auto gguf = Gguf::Open(path);
  EXPECT_TRUE(gguf.ok()) << gguf.status().message();
  return *std::move(gguf);
}

// A large tensor, so that most of its bytes are in no sample.
std::string WriteLargeModel(const std::string& path) {
  GgufWriter writer;
  writer.AddString("general.architecture", "llama");
  const Format& format = *FindFormat("Q8_0");
  const uint64_t shape[] = {1024, 4096};
  const Bytes bytes(format.RowBytes(1024) * 4096, 1);
  writer.AddTensor("a", format.gguf_type, shape, bytes);
  EXPECT_TRUE(writer.Write(path).ok());
  return path;
}

TEST_F(PanelFileTest, BelongsToOneFile) {
  ASSERT_TRUE(Write().ok());
  std::filesystem::rename(folder_.path("model.gguf"), folder_.path("moved.gguf"));
  // The time of change has moved; the sidecar is found and is to be written again in its place.
  const auto moved = OpenModel(folder_.path("moved.gguf"));
  EXPECT_EQ(PanelFile::PathOf(*moved).value(), Path());
  const std::unique_ptr<Gguf> other = WriteModel("model.gguf", 2);
  EXPECT_EQ(PanelFile::Open(*other).status().code(), StatusCode::kNotFound);
}

// The same size, time, metadata and samples.
TEST_F(PanelFileTest, ACopyWithOtherWeightsIsAnotherModel) {
  const std::string first = WriteLargeModel(folder_.path("first.gguf"));
  const std::string second = folder_.path("second.gguf");
  std::filesystem::copy_file(first, second);
  std::filesystem::last_write_time(second, std::filesystem::last_write_time(first));
  EditKeepingTheTime(second, std::filesystem::file_size(second) - 20000);
  const auto a = OpenModel(first), b = OpenModel(second);
  const GgufTensor* tensors[] = {a->FindTensor("a")};
  ASSERT_TRUE(PanelFile::Write(*a, tensors, Serial, nullptr).ok());
  EXPECT_TRUE(PanelFile::Open(*a).ok());
  EXPECT_EQ(PanelFile::Open(*b).status().code(), StatusCode::kNotFound);
}

TEST_F(PanelFileTest, AFileEditedInPlaceIsAnotherModel) {
  ASSERT_TRUE(Write().ok());
  gguf_.reset();
  const std::string path = folder_.path("model.gguf");
  // The bytes stay as they are: what no sample could see must count too.
  std::filesystem::last_write_time(
      path, std::filesystem::last_write_time(path) + std::chrono::seconds(1));
  EXPECT_EQ(PanelFile::Open(*OpenModel(path)).status().code(), StatusCode::kNotFound);
}

TEST_F(PanelFileTest, AFileEditedInPlaceWithItsTimePutBackIsAnotherModel) {
  const std::string path = WriteLargeModel(folder_.path("large.gguf"));
  auto gguf = OpenModel(path);
  const GgufTensor* tensors[] = {gguf->FindTensor("a")};
  ASSERT_TRUE(PanelFile::Write(*gguf, tensors, Serial, nullptr).ok());
  EXPECT_TRUE(PanelFile::Open(*gguf).ok());
  gguf.reset();
  EditKeepingTheTime(path, std::filesystem::file_size(path) - 20000);
  EXPECT_EQ(PanelFile::Open(*OpenModel(path)).status().code(), StatusCode::kCorrupt);
}

TEST_F(PanelFileTest, CutFilesAreCorrupt) {
  ASSERT_TRUE(Write().ok());
  const Bytes whole = ReadFile(Path());
  for (size_t i = 0; i < 100; ++i) {
    WriteFile(Path(), std::span(whole).first(whole.size() * i / 100));
    EXPECT_EQ(OpenCode(), StatusCode::kCorrupt) << i;
  }
  WriteFile(Path(), std::span(whole).first(whole.size() - 1));
  EXPECT_EQ(OpenCode(), StatusCode::kCorrupt);
  ASSERT_TRUE(Write().ok());
  EXPECT_EQ(OpenCode(), StatusCode::kOk);
}

TEST_F(PanelFileTest, EveryByteOfTheDirectoryIsChecked) {
  ASSERT_TRUE(Write().ok());
  const Bytes whole = ReadFile(Path());
  uint64_t directory_bytes;
  std::memcpy(&directory_bytes, whole.data() + 40, sizeof(directory_bytes));
  const size_t head = 56 + directory_bytes;
  ASSERT_GT(head, 500u);
  ASSERT_LT(head, 4096u);
  for (size_t at = 0; at < head; at += 3) {
    Bytes bad = whole;
    bad[at] ^= 0x40;
    WriteFile(Path(), bad);
    EXPECT_EQ(OpenCode(), StatusCode::kCorrupt) << at;
  }
}

TEST_F(PanelFileTest, VerifyFindsDamagedData) {
  ASSERT_TRUE(Write().ok());
  Bytes bad = ReadFile(Path());
  const auto intact = PanelFile::Open(*gguf_);
  ASSERT_TRUE(intact.ok());
  const std::vector<uint8_t> needle((*intact)->Find("Q4_0.weight") + 500,
                                    (*intact)->Find("Q4_0.weight") + 516);
  const auto at = std::search(bad.begin(), bad.end(), needle.begin(), needle.end());
  ASSERT_NE(at, bad.end());
  *at ^= 1;
  std::filesystem::remove(Path());  // the intact map keeps its own file
  WriteFile(Path(), bad);
  const auto panels = PanelFile::Open(*gguf_);
  ASSERT_TRUE(panels.ok());
  EXPECT_NE((*panels)->Verify(Serial).message().find("Q4_0.weight"), std::string::npos);
  EXPECT_TRUE((*intact)->Verify(FourThreads).ok());
}

// Larger than the blocks that the file is written in, with panels across their borders.
TEST_F(PanelFileTest, PanelsAcrossBlocksAreWhole) {
  GgufWriter writer;
  writer.AddString("general.architecture", "llama");
  std::vector<Bytes> data;
  const Format& format = *FindFormat("Q4_0");
  for (const char* name : {"a", "b"}) {
    const uint64_t shape[] = {4096, 2600};
    Bytes bytes(format.RowBytes(4096) * 2600);
    for (size_t i = 0; i < bytes.size(); i += 8) {
      const uint64_t word = RandomBits(3, static_cast<uint64_t>(*name), i);
      std::memcpy(&bytes[i], &word, 8);
    }
    data.push_back(std::move(bytes));
    writer.AddTensor(name, format.gguf_type, shape, data.back());
  }
  ASSERT_TRUE(writer.Write(folder_.path("large.gguf")).ok());
  const auto gguf = Gguf::Open(folder_.path("large.gguf"));
  ASSERT_TRUE(gguf.ok());
  const GgufTensor* both[] = {(*gguf)->FindTensor("b"), (*gguf)->FindTensor("a")};
  ASSERT_TRUE(PanelFile::Write(**gguf, both, FourThreads, nullptr).ok());
  const auto panels = PanelFile::Open(**gguf);
  ASSERT_TRUE(panels.ok()) << panels.status().message();
  EXPECT_TRUE((*panels)->Verify(FourThreads).ok());
  for (const GgufTensor* tensor : both) ExpectLossless(*tensor, (*panels)->Find(tensor->name));
}

TEST_F(PanelFileTest, IsVerifiedOncePerBoot) {
  ASSERT_TRUE(Write().ok());
  Bytes bad = ReadFile(Path());
  bad[bad.size() - 1] ^= 1;
  std::filesystem::remove(Path());
  WriteFile(Path(), bad);
  EXPECT_EQ((*PanelFile::Open(*gguf_))->VerifyOncePerBoot(Serial).code(), StatusCode::kCorrupt);
  ASSERT_TRUE(Write().ok());
  const auto intact = PanelFile::Open(*gguf_);
  ASSERT_TRUE(intact.ok());
  size_t tasks = 0;
  const auto counting = [&](size_t n, const std::function<void(size_t)>& f) {
    tasks += n;
    Serial(n, f);
  };
  EXPECT_TRUE((*intact)->VerifyOncePerBoot(counting).ok());
  EXPECT_GT(tasks, 0u);
  tasks = 0;
  EXPECT_TRUE((*intact)->VerifyOncePerBoot(counting).ok());
  EXPECT_EQ(tasks, 0u);
  WriteFile(Path() + ".verified", Bytes{'x', '\n'});  // another boot
  EXPECT_TRUE((*intact)->VerifyOncePerBoot(counting).ok());
  EXPECT_GT(tasks, 0u);
}

TEST_F(PanelFileTest, UnwritableFolderIsAStatus) {
  WriteFile(folder_.path("cache"), Pattern(1, 0));  // a file where the folder should be
  const Status status = Write();
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_NE(status.message().find(folder_.path("cache")), std::string::npos);
  unsetenv("SLUICE_CACHE");
  setenv("SLUICE_CACHE", "/proc/none", 1);  // refuses new folders even to root
  EXPECT_EQ(Write().code(), StatusCode::kIo);
}

TEST_F(PanelFileTest, FullDiskIsAStatusAndLeavesNothing) {
  ASSERT_TRUE(Write().ok());
  const uint64_t size = std::filesystem::file_size(Path());
  std::filesystem::remove(Path());
  const std::string panel_folder = std::filesystem::path(Path()).parent_path();
  struct rlimit old{};
  getrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_IGN);
  struct rlimit small = old;
  small.rlim_cur = size / 2;  // as on a disk with no more room
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &small), 0);
  const Status status = Write(FourThreads);
  setrlimit(RLIMIT_FSIZE, &old);
  signal(SIGXFSZ, SIG_DFL);
  EXPECT_EQ(status.code(), StatusCode::kIo) << status.message();
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(panel_folder), {}), 0);
  EXPECT_TRUE(Write().ok());
}

TEST_F(PanelFileTest, ConcurrentWritersAllLeaveAWholeFile) {
  std::vector<std::thread> writers;
  std::atomic<int> good{0};
  for (int w = 0; w < 4; ++w) {
    writers.emplace_back([&] {
      for (int round = 0; round < 5; ++round) good += Write().ok();
    });
  }
  // A reader meanwhile sees no file or a whole one.
  for (int i = 0; i < 50; ++i) {
    const auto panels = PanelFile::Open(*gguf_);
    if (panels.ok()) {
      EXPECT_TRUE((*panels)->Verify(Serial).ok());
    } else {
      EXPECT_EQ(panels.status().code(), StatusCode::kNotFound) << panels.status().message();
    }
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(good, 20);
  EXPECT_EQ(std::distance(std::filesystem::directory_iterator(folder_.path("cache/panels")), {}),
            1);
}

}  // namespace
}  // namespace sluice
