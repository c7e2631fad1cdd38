// MappedFile and AtomicFile.
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <numeric>

#include "src/base/atomic_file.h"
#include "src/base/mapped_file.h"
#include "src/base/memory_lock.h"
#include "src/base/small_file.h"
#include "tests/base/temp_folder.h"

namespace sluice {
namespace {

std::vector<uint8_t> Sequence(size_t n) {
  std::vector<uint8_t> bytes(n);
  std::iota(bytes.begin(), bytes.end(), uint8_t{0});
  return bytes;
}

std::vector<uint8_t> Contents(const MappedFile& file) {
  return {file.bytes().begin(), file.bytes().end()};
}

TEST(MappedFile, ShowsTheBytes) {
  const TempFolder folder;
  const std::vector<uint8_t> bytes = Sequence(10000);
  WriteFile(folder.path("a"), bytes);
  const auto file = MappedFile::Open(folder.path("a"));
  ASSERT_TRUE(file.ok()) << file.status().message();
  EXPECT_EQ(Contents(**file), bytes);
  EXPECT_EQ((*file)->ResidentBytes(), bytes.size());  // just read, just written
  EXPECT_TRUE((*file)->Contains((*file)->bytes().data() + 9999));
  EXPECT_FALSE((*file)->Contains((*file)->bytes().data() + 10000));
}

TEST(MappedFile, HintsKeepTheBytes) {
  const TempFolder folder;
  const std::vector<uint8_t> bytes = Sequence(100000);
  WriteFile(folder.path("a"), bytes);
  const auto file = MappedFile::Open(folder.path("a"));
  ASSERT_TRUE(file.ok());
  (*file)->WillNeed(5000, 90000);
  (*file)->DontNeed(5000, SIZE_MAX);  // clipped
  (*file)->DontNeed(SIZE_MAX, 1);
  EXPECT_EQ(Contents(**file), bytes);
}

uint64_t SumOf(const MappedFile& file) {
  return std::accumulate(file.bytes().begin(), file.bytes().end(), uint64_t{0});
}

// How much is mapped by huge pages is the file system's choice; that none is when told so, that the
// address allows it, and the bytes, are ours.
TEST(MappedFile, HugePagesAreAHint) {
  constexpr size_t kHuge = 2 << 20;
  const TempFolder folder;
  const std::vector<uint8_t> bytes = Sequence(3 * kHuge + 12345);
  WriteFile(folder.path("a"), bytes);
  const auto file = MappedFile::Open(folder.path("a"));
  ASSERT_TRUE(file.ok());
  EXPECT_EQ(reinterpret_cast<uintptr_t>((*file)->bytes().data()) % kHuge, 0u);
  const uint64_t sum = SumOf(**file);
  (*file)->PreferHugePages(true);
  EXPECT_EQ(SumOf(**file), sum);
  EXPECT_LE((*file)->HugeBytes(), bytes.size());
  (*file)->PreferHugePages(false);
  EXPECT_EQ(SumOf(**file), sum);
  EXPECT_EQ((*file)->HugeBytes(), 0u);
  EXPECT_EQ(Contents(**file), bytes);
}

TEST(MappedFile, ManyMapsLeaveNoReservedAddresses) {
  const TempFolder folder;
  WriteFile(folder.path("a"), Sequence((2 << 20) + 1));
  const auto maps = [] {
    const std::vector<uint8_t> text = ReadFile("/proc/self/maps");
    return std::count(text.begin(), text.end(), '\n');
  };
  const auto before = maps();
  for (int i = 0; i < 200; ++i) ASSERT_TRUE(MappedFile::Open(folder.path("a")).ok());
  EXPECT_LE(maps(), before + 50);  // allocators map too, a sanitizer's most of all
}

TEST(LockMemory, RefusalSaysWhatAndHowMuch) {
  std::vector<uint8_t> memory(1 << 12);
  EXPECT_TRUE(LockMemory(memory.data(), 0, "nothing").ok());
  const Status status = LockMemory(nullptr, size_t{1} << 40, "the weights");
  EXPECT_EQ(status.code(), StatusCode::kIo);
  EXPECT_NE(status.message().find("the weights: cannot lock 1048576 MiB"), std::string::npos)
      << status.message();
}

TEST(MappedFile, RefusesWhatIsNoFile) {
  const TempFolder folder;
  WriteFile(folder.path("empty"), {});
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  struct Case {
    std::string path;
    StatusCode code;
    const char* word;
  };
  for (const Case& c : {Case{folder.path("none"), StatusCode::kNotFound, "No such file"},
                        Case{folder.path("empty"), StatusCode::kCorrupt, "empty"},
                        Case{folder.path(), StatusCode::kIo, "directory"},
                        Case{folder.path("pipe"), StatusCode::kIo, "regular"}}) {
    const auto file = MappedFile::Open(c.path);
    ASSERT_FALSE(file.ok()) << c.path;
    EXPECT_EQ(file.status().code(), c.code) << c.path;
    EXPECT_NE(file.status().message().find(c.path), std::string::npos);
    EXPECT_NE(file.status().message().find(c.word), std::string::npos) << file.status().message();
  }
}

TEST(AtomicFile, ReplacesWhatALinkNamesAndNothingThatIsNoFile) {
  const TempFolder folder;
  const std::vector<uint8_t> old = Sequence(3), now = Sequence(9);
  WriteFile(folder.path("target"), old);
  ASSERT_EQ(symlink("target", folder.path("link").c_str()), 0);
  {
    auto file = AtomicFile::Create(folder.path("link"));
    ASSERT_TRUE(file.ok()) << file.status().message();
    ASSERT_TRUE((*file)->WriteAt(0, now).ok());
    ASSERT_TRUE((*file)->Commit().ok());
  }
  struct stat seen = {};
  ASSERT_EQ(lstat(folder.path("link").c_str(), &seen), 0);
  EXPECT_TRUE(S_ISLNK(seen.st_mode));
  EXPECT_EQ(Contents(**MappedFile::Open(folder.path("target"))), now);

  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  ASSERT_EQ(mkdir(folder.path("folder").c_str(), 0700), 0);
  for (const char* name : {"pipe", "folder"}) {
    const auto file = AtomicFile::Create(folder.path(name));
    ASSERT_FALSE(file.ok());
    EXPECT_NE(file.status().message().find("expected a file"), std::string::npos);
  }
  ASSERT_EQ(lstat(folder.path("pipe").c_str(), &seen), 0);
  EXPECT_TRUE(S_ISFIFO(seen.st_mode));
}

TEST(SmallFile, NeverWaitsForWhatIsNoFile) {
  const TempFolder folder;
  EXPECT_EQ(ReadSmallFile(folder.path("none"), 10).status().code(), StatusCode::kNotFound);
  ASSERT_EQ(mkfifo(folder.path("pipe").c_str(), 0600), 0);
  EXPECT_EQ(ReadSmallFile(folder.path("pipe"), 10).status().code(), StatusCode::kIo);
  EXPECT_EQ(WriteSmallFile(folder.path("pipe"), "x").code(), StatusCode::kIo);
  EXPECT_EQ(ReadSmallFile(folder.path(), 10).status().code(), StatusCode::kIo);
  ASSERT_TRUE(WriteSmallFile(folder.path("a"), "first line\n").ok());
  EXPECT_EQ(*ReadSmallFile(folder.path("a"), 100), "first line\n");
  EXPECT_EQ(*ReadSmallFile(folder.path("a"), 5), "first");
}

TEST(AtomicFile, AppearsOnCommit) {
  const TempFolder folder;
  const std::vector<uint8_t> bytes = Sequence(5000);
  {
    auto file = AtomicFile::Create(folder.path("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->Resize(5100).ok());
    ASSERT_TRUE((*file)->WriteAt(100, bytes).ok());
    EXPECT_NE(access(folder.path("a").c_str(), F_OK), 0);
    ASSERT_TRUE((*file)->Commit().ok());
  }
  const std::vector<uint8_t> got = ReadFile(folder.path("a"));
  ASSERT_EQ(got.size(), 5100u);
  EXPECT_EQ(std::vector<uint8_t>(got.begin() + 100, got.end()), bytes);
  EXPECT_EQ(folder.entries(), 1u);
}

TEST(AtomicFile, LeavesNothingWithoutCommit) {
  const TempFolder folder;
  {
    auto file = AtomicFile::Create(folder.path("a"));
    ASSERT_TRUE(file.ok());
    ASSERT_TRUE((*file)->WriteAt(0, Sequence(10)).ok());
    EXPECT_EQ(folder.entries(), 1u);
  }
  EXPECT_EQ(folder.entries(), 0u);
}

TEST(AtomicFile, KeepsTheOldFileUntilCommit) {
  const TempFolder folder;
  WriteFile(folder.path("a"), Sequence(3));
  {
    ASSERT_TRUE(AtomicFile::Create(folder.path("a")).ok());
  }
  EXPECT_EQ(ReadFile(folder.path("a")), Sequence(3));
}

TEST(AtomicFile, FailsInAMissingFolder) {
  const TempFolder folder;
  const auto file = AtomicFile::Create(folder.path("none/a"));
  ASSERT_FALSE(file.ok());
  EXPECT_EQ(file.status().code(), StatusCode::kIo);
}

TEST(MakeFolders, MakesParentsAndIsIdempotent) {
  const TempFolder folder;
  EXPECT_TRUE(MakeFolders(folder.path("a/b/c")).ok());
  EXPECT_TRUE(MakeFolders(folder.path("a/b/c")).ok());
  EXPECT_TRUE(std::filesystem::is_directory(folder.path("a/b/c")));
  WriteFile(folder.path("file"), Sequence(1));
  EXPECT_FALSE(MakeFolders(folder.path("file/x")).ok());
}

}  // namespace
}  // namespace sluice
