#include "src/machine/devices.h"

#include <algorithm>
#include <boost/json.hpp>
#include <cmath>

#include "src/base/cache_folder.h"
#include "src/base/printable.h"
#include "src/base/small_file.h"

namespace sluice {
namespace {

namespace json = boost::json;

constexpr size_t kMostBytes = 1 << 20, kMostDevices = 1000;
constexpr char kFields[] = "name, bandwidth_gb_s, tops, memory_gb, description";

std::string Lower(std::string_view text) {
  std::string lower(text);
  for (char& c : lower) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c - 'A' + 'a');
  }
  return lower;
}

Status Bad(const std::string& where, const std::string& what) {
  return Status(StatusCode::kCorrupt, where + ": " + what);
}

// A number of the object; `least` for one that is not there, unless it is needed.
Status ReadNumber(const json::object& o, const char* field, bool needed, double* out) {
  const json::value* v = o.if_contains(field);
  if (v == nullptr && !needed) return Status();
  const double number = v != nullptr && v->is_number() ? v->to_number<double>() : -1;
  if (!std::isfinite(number) || number < 0 || (needed && number == 0) || number > 1e9) {
    return Status(StatusCode::kCorrupt, std::string("expected ") + field + " as a number " +
                                            (needed ? "above 0" : "of at least 0") + ", found " +
                                            (v == nullptr ? "nothing" : json::serialize(*v)));
  }
  *out = number;
  return Status();
}

Status ReadText(const json::object& o, const char* field, std::string* out) {
  const json::value* v = o.if_contains(field);
  if (v == nullptr) return Status();
  if (!v->is_string() || v->get_string().size() > 200) {
    return Status(StatusCode::kCorrupt,
                  std::string("expected ") + field + " as a string of up to 200 bytes");
  }
  *out = Printable(std::string_view(v->get_string()), 200);
  return Status();
}

Result<Device> ReadDevice(const json::value& value) {
  const json::object* o = value.if_object();
  if (o == nullptr) {
    return Status(StatusCode::kCorrupt, std::string("expected an object of ") + kFields);
  }
  Device d;
  for (const auto& [field, ignored] : *o) {
    if (std::string(kFields).find(std::string(field)) == std::string::npos) {
      return Status(StatusCode::kCorrupt, "no field " + Printable(std::string_view(field)) +
                                              "; the fields are " + kFields);
    }
  }
  RETURN_IF_ERROR(ReadText(*o, "name", &d.name));
  RETURN_IF_ERROR(ReadText(*o, "description", &d.description));
  d.name = Lower(d.name);
  if (d.name.empty()) return Status(StatusCode::kCorrupt, "expected a name, found none");
  RETURN_IF_ERROR(ReadNumber(*o, "bandwidth_gb_s", true, &d.bandwidth_gb_s));
  RETURN_IF_ERROR(ReadNumber(*o, "tops", false, &d.tops));
  RETURN_IF_ERROR(ReadNumber(*o, "memory_gb", false, &d.memory_gb));
  return d;
}

}  // namespace

// From data sheets. CPUs: channels x rate x 8 bytes; tops from cores x clock x the int8
// multiply-adds of their dot or matrix instructions, of a typical part. GPUs: dense 16-bit.
std::span<const Device> PublishedDevices() {
  static const std::vector<Device> devices = {
      {"pi5", "Raspberry Pi 5, LPDDR4X-4267, 4 cores", 17, 0.6, 16},
      {"ddr4-dual", "desktop, two channels of DDR4-3200", 51, 4, 0},
      {"ddr5-dual", "desktop or laptop, two channels of DDR5-5600", 90, 8, 0},
      {"lpddr5x-256", "laptop, 256 bits of LPDDR5X-8000", 256, 10, 0},
      {"server-8ch", "server, 8 channels of DDR5-4800 (Xeon 4th generation)", 307, 100, 0},
      {"server-12ch", "server, 12 channels of DDR5-4800 (EPYC 9004)", 461, 60, 0},
      {"server-12ch-6000", "server, 12 channels of DDR5-6000 (EPYC 9005)", 576, 100, 0},
      {"graviton3", "AWS Graviton3, 8 channels of DDR5-4800, 64 cores", 307, 43, 0},
      {"graviton4", "AWS Graviton4, 12 channels of DDR5-5600, 96 cores", 538, 69, 0},
      {"m1", "Apple M1", 68, 5.2, 16},
      {"m1-max", "Apple M1 Max", 400, 21, 64},
      {"m2-ultra", "Apple M2 Ultra", 800, 54, 192},
      {"m3-max", "Apple M3 Max", 400, 28, 128},
      {"m4", "Apple M4", 120, 8.5, 32},
      {"m4-pro", "Apple M4 Pro", 273, 17, 64},
      {"m4-max", "Apple M4 Max", 546, 34, 128},
      {"m3-ultra", "Apple M3 Ultra", 819, 57, 512},
      {"a10g", "NVIDIA A10G, 24 GB", 600, 70, 24},
      {"l40s", "NVIDIA L40S, 48 GB", 864, 362, 48},
      {"rtx4090", "NVIDIA RTX 4090, 24 GB", 1008, 165, 24},
      {"a100-80g", "NVIDIA A100, 80 GB HBM2e", 2039, 312, 80},
      {"h100-sxm", "NVIDIA H100 SXM, 80 GB HBM3", 3350, 989, 80},
  };
  return devices;
}

Result<std::vector<Device>> ReadDevices(const std::string& path) {
  ASSIGN_OR_RETURN(const std::string text, ReadSmallFile(path, kMostBytes));
  boost::system::error_code error;
  const json::value value = json::parse(text, error);
  const json::object* o = error ? nullptr : value.if_object();
  const json::value* list = o == nullptr ? nullptr : o->if_contains("devices");
  if (list == nullptr || !list->is_array()) {
    return Bad(path,
               "expected {\"devices\": [{\"name\": \"box\", \"bandwidth_gb_s\": 200}]}, found " +
                   (error ? error.message() : std::string("something else")));
  }
  if (list->get_array().size() > kMostDevices) {
    return Bad(path, "expected " + std::to_string(kMostDevices) + " devices at most, found " +
                         std::to_string(list->get_array().size()));
  }
  std::vector<Device> devices;
  for (const json::value& entry : list->get_array()) {
    Result<Device> device = ReadDevice(entry);
    if (!device.ok()) {
      return device.status().Within(path + ": device " + std::to_string(devices.size() + 1));
    }
    devices.push_back(*std::move(device));
  }
  return devices;
}

Result<std::vector<Device>> AllDevices(const std::string& path) {
  const std::span<const Device> published = PublishedDevices();
  std::vector<Device> all(published.begin(), published.end());
  std::string file = path;
  if (file.empty()) {
    const Result<std::string> folder = CacheFolder();
    if (!folder.ok()) return all;
    file = *folder + "/devices.json";
  }
  Result<std::vector<Device>> own = ReadDevices(file);
  if (!own.ok() && path.empty() && own.status().code() == StatusCode::kNotFound) return all;
  if (!own.ok()) return own.status();
  for (Device& device : *own) {
    const auto same = [&](const Device& d) { return d.name == device.name; };
    const auto found = std::find_if(all.begin(), all.end(), same);
    if (found != all.end()) {
      *found = std::move(device);
    } else {
      all.push_back(std::move(device));
    }
  }
  return all;
}

Result<Device> FindDevice(std::span<const Device> devices, std::string_view name) {
  const std::string wanted = Lower(name);
  const Device* begins = nullptr;
  size_t begin_so = 0;
  std::string names;
  for (const Device& d : devices) {
    if (d.name == wanted) return d;
    if (!wanted.empty() && d.name.starts_with(wanted)) {
      begins = &d;
      ++begin_so;
    }
    names += (names.empty() ? "" : " ") + d.name;
  }
  if (begin_so == 1) return *begins;
  return Status(StatusCode::kInvalidArgument, "no device " + Printable(name) + "; known are " +
                                                  names + "; --devices FILE adds your own");
}

}  // namespace sluice
