// Checks of the disks under the model and the cache folder.
#include <algorithm>
#include <string_view>

#include "src/machine/checkup_checks.h"
#include "src/machine/disk.h"

namespace sluice {
namespace {

constexpr double kSlowDisk_mb_s = 200, kLongLoad_s = 10;

// What was found, with the speed where it is known.
std::string Describe(const Place& place) {
  std::string text = (place.file_system.empty() ? "an unknown file system" : place.file_system);
  if (place.read_mb_s) {
    text += Printf(", read at %.0f MB/s", *place.read_mb_s);
  } else if (!place.why_not_measured.empty()) {
    text += ", speed not measured: " + place.why_not_measured;
  }
  return text + " (" + place.path + ")";
}

// Bytes of the model that are on the disk and not in memory: those that the next load reads.
uint64_t ToRead(const ModelNeed& m) {
  return m.panels_resident_bytes ? m.panel_bytes - std::min(m.panel_bytes, *m.panels_resident_bytes)
                                 : m.file_bytes - std::min(m.file_bytes, m.file_resident_bytes);
}

Finding CheckDisk(const char* name, const CheckupInput& in, const Place& place,
                  const std::vector<std::string>& move) {
  const FileSystemKind kind = KindOfFileSystem(place.file_system);
  if (kind == FileSystemKind::kMemory) {
    return {name,
            Severity::kNote,
            Describe(place) + ": it takes memory, and is gone after a restart",
            {},
            move};
  }
  const bool remote = kind == FileSystemKind::kNetwork;
  const bool slow = place.read_mb_s && *place.read_mb_s < kSlowDisk_mb_s;
  if (!remote && kind != FileSystemKind::kFuse && !slow) return Ok(name, Describe(place));
  Finding f{name, Severity::kNote, Describe(place), {}, move};
  if (remote) {
    f.severity = Severity::kWarning;
    f.found += ": a lost connection ends the process (SIGBUS)";
  } else if (kind == FileSystemKind::kFuse) {
    f.found += ": every page goes through another program, by 4 KiB pages";
    f.severity = Severity::kWarning;
  } else {
    f.found += ": slow";
  }
  if (place.read_mb_s && in.model) {
    const double bytes = static_cast<double>(in.model->file_bytes);
    f.cost = Measure(bytes * 1e-6 / *place.read_mb_s, CostUnit::kSeconds,
                     "to read the whole model once at the measured speed");
  }
  return f;
}

}  // namespace

Finding CheckModelDisk(const CheckupInput& in) {
  const char* const name = "model disk";
  const Place* place = FindPlace(in, "model");
  if (place == nullptr) return Ok(name, "no model");
  if (place->file_system.empty()) {
    return CannotTell(name, "/proc/self/mountinfo does not say what is under " + place->path);
  }
  return CheckDisk(name, in, *place, {"copy the model to a local disk (SLUICE_MODELS)"});
}

Finding CheckCacheFolder(const CheckupInput& in) {
  const char* const name = "cache folder";
  const Place* place = FindPlace(in, "cache");
  if (place == nullptr) {
    return {name,
            Severity::kWarning,
            "there is none: weights are repacked in memory at every load",
            {},
            {"export SLUICE_CACHE=/var/cache/sluice (or set HOME)"}};
  }
  if (!place->writable) {
    return {name,
            Severity::kWarning,
            place->path +
                " cannot be written: weights are repacked in memory at every load, and "
                "are not shared by processes",
            in.model ? Model(static_cast<double>(in.model->panel_bytes) / 0.9e9, CostUnit::kSeconds,
                             "1313 MB took 1.5 s (bench/README.md), each load")
                     : Cost{},
            {"export SLUICE_CACHE=FOLDER", "sudo chown -R $USER " + place->path}};
  }
  if (place->file_system.empty()) {
    return CannotTell(name, "/proc/self/mountinfo does not say what is under " + place->path);
  }
  return CheckDisk(name, in, *place, {"export SLUICE_CACHE=FOLDER (on a local disk)"});
}

Finding CheckCacheRoom(const CheckupInput& in) {
  const char* const name = "cache room";
  const Place* place = FindPlace(in, "cache");
  if (place == nullptr || !place->free_bytes) return Ok(name, "not known");
  const std::string free = Size(*place->free_bytes) + " free";
  if (!in.model) {
    if (*place->free_bytes >= (uint64_t{1} << 30)) return Ok(name, free);
    return {name,
            Severity::kNote,
            "only " + free + " for panels (a second copy of the weights)",
            {},
            {"rm " + place->path + "/panels/* (panels are written again when needed)"}};
  }
  if (in.model->panels_resident_bytes) return Ok(name, free + ", the panels are there");
  if (in.model->panel_bytes < *place->free_bytes) {
    return Ok(name, free + ", the panels take " + Size(in.model->panel_bytes));
  }
  return {name,
          Severity::kWarning,
          free + ", the panels take " + Size(in.model->panel_bytes) +
              ": weights are repacked in memory at every load",
          Model(static_cast<double>(in.model->panel_bytes) / 0.9e9, CostUnit::kSeconds,
                "1313 MB took 1.5 s (bench/README.md), each load"),
          {"rm " + place->path + "/panels/* (of other models)", "export SLUICE_CACHE=FOLDER"}};
}

Finding CheckFirstLoad(const CheckupInput& in) {
  const char* const name = "next load";
  if (!in.model) return Ok(name, "no model");
  const ModelNeed& m = *in.model;
  const Place* place = FindPlace(in, m.panels_resident_bytes ? "cache" : "model");
  if (place == nullptr || !place->read_mb_s) return Ok(name, "the disk was not measured");
  const double read_s = static_cast<double>(ToRead(m)) * 1e-6 / *place->read_mb_s;
  const double write_s = m.panels_resident_bytes ? 0 : static_cast<double>(m.panel_bytes) / 0.9e9;
  const std::string found =
      Printf("about %.1f s: %s to read at %.0f MB/s", read_s + write_s, Size(ToRead(m)).c_str(),
             *place->read_mb_s) +
      (m.panels_resident_bytes ? "" : ", " + Size(m.panel_bytes) + " of panels to write, once");
  if (read_s + write_s < kLongLoad_s) return Ok(name, found);
  return {name,
          Severity::kNote,
          found,
          Model(read_s + write_s, CostUnit::kSeconds,
                "bytes that are not in memory at the disk's measured speed"),
          {Printf("cat %s > /dev/null (reads it ahead of time)", m.path.c_str())}};
}

}  // namespace sluice
