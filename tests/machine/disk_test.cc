#include "src/machine/disk.h"

#include <gtest/gtest.h>

#include <vector>

#include "tests/base/temp_folder.h"
#include "tests/machine/made_up_machine.h"

namespace sluice {
namespace {

TEST(Disk, FindsTheMountOfAPath) {
  const MadeUpMachine machine;
  machine.Write("proc/self/mountinfo",
                "22 1 8:1 / / rw - overlay overlay rw\n"
                "23 22 0:5 / /home rw shared:1 - ext4 /dev/a rw\n"
                "24 23 0:6 / /home/with\\040blank rw shared:1 master:2 - nfs4 server:/x rw\n"
                "25 22 0:7 / /tmp rw - ext4 /dev/a rw\n"
                "26 25 0:8 / /tmp rw - tmpfs tmpfs rw\n"
                "nonsense\n27 26\n- - -\n");
  const SystemFiles files(machine.root());
  EXPECT_EQ(FileSystemOf(files, "/home/me/model.gguf"), "ext4");
  EXPECT_EQ(FileSystemOf(files, "/homes/model.gguf"), "overlay");
  EXPECT_EQ(FileSystemOf(files, "/home/with blank/m.gguf"), "nfs4");
  EXPECT_EQ(FileSystemOf(files, "/tmp/m.gguf"), "tmpfs") << "the later mount hides the earlier";
  machine.Remove("proc/self/mountinfo");
  EXPECT_EQ(FileSystemOf(files, "/home/me"), "");
}

TEST(Disk, KindsOfFileSystems) {
  EXPECT_EQ(KindOfFileSystem("ext4"), FileSystemKind::kLocal);
  EXPECT_EQ(KindOfFileSystem("overlay"), FileSystemKind::kLocal);
  EXPECT_EQ(KindOfFileSystem("nfs4"), FileSystemKind::kNetwork);
  EXPECT_EQ(KindOfFileSystem("fuse.sshfs"), FileSystemKind::kNetwork);
  EXPECT_EQ(KindOfFileSystem("fuseblk"), FileSystemKind::kFuse);
  EXPECT_EQ(KindOfFileSystem("tmpfs"), FileSystemKind::kMemory);
}

TEST(Disk, FoldersThatAreNotThereYet) {
  const TempFolder folder;
  EXPECT_EQ(ExistingParent(folder.path("a/b/c")), folder.path());
  EXPECT_GT(FreeBytes(folder.path()).value_or(0), 0u);
  EXPECT_FALSE(FreeBytes(folder.path("a/b")).has_value());
}

TEST(Disk, ReadsPieces) {
  const TempFolder folder;
  WriteFile(folder.path("small"), std::vector<uint8_t>(1000, 1));
  EXPECT_FALSE(MeasureDiskRead(folder.path("small"), 0.1).ok());
  EXPECT_FALSE(MeasureDiskRead(folder.path("none"), 0.1).ok());
  EXPECT_FALSE(MeasureDiskRead(folder.path(), 0.1).ok());
  WriteFile(folder.path("large"), std::vector<uint8_t>(12 << 20, 1));
  const Result<double> rate = MeasureDiskRead(folder.path("large"), 0.1);
  ASSERT_TRUE(rate.ok()) << rate.status().message();
  EXPECT_GT(*rate, 0);
}

}  // namespace
}  // namespace sluice
