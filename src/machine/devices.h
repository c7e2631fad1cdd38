// Machines that are not here, by what their makers publish: the bandwidth of their
// memory, the multiply-adds of their matrix units, how much memory they have. For
// `sluice plan --on`: what a model could do there at best. A user's file adds more.
// Any thread.
#ifndef SLUICE_SRC_MACHINE_DEVICES_H_
#define SLUICE_SRC_MACHINE_DEVICES_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "src/base/status.h"

namespace sluice {

struct Device {
  std::string name;         // "h100-sxm": lower case, what --on takes
  std::string description;  // "NVIDIA H100 SXM, 80 GB HBM3"
  double bandwidth_gb_s = 0;
  // 1e12 operations (two a multiply-add) per second of dense matrix products in 8 bits on CPUs and
  // in 16 on the others; 0: not published, so bandwidth alone is the ceiling.
  double tops = 0;
  double memory_gb = 0;  // 0: as much as one buys
};

// What a good engine reaches of the published figures; the share is an assumption, and whoever
// prints a prediction from it says so.
inline constexpr double kDeviceReadShare = 0.8, kDeviceComputeShare = 0.5;

// Those known without a file.
std::span<const Device> PublishedDevices();

// {"devices": [{"name": "box", "bandwidth_gb_s": 200, "tops": 4, "memory_gb": 64,
// "description": "..."}]}; only the first two are needed. kCorrupt says which entry is wrong and
// how.
Result<std::vector<Device>> ReadDevices(const std::string& path);
// PublishedDevices, and those of `path`, or if it is empty of devices.json in the cache folder when
// there is one. A name that is published too replaces it.
Result<std::vector<Device>> AllDevices(const std::string& path);

// By name, any case; or the only one whose name begins so. kInvalidArgument
// lists the names.
Result<Device> FindDevice(std::span<const Device> devices, std::string_view name);

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_DEVICES_H_
