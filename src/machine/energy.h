// What the processors have used, where the system lets us read it: the RAPL
// counters of Intel and AMD (/sys/class/powercap, often for root only). Any
// thread; a reading costs about 20 us a package.
#ifndef SLUICE_SRC_MACHINE_ENERGY_H_
#define SLUICE_SRC_MACHINE_ENERGY_H_

#include <cstdint>
#include <string>
#include <vector>

namespace sluice {

class EnergyMeter {
 public:
  // Packages found now. `root` is put before every path read, for tests.
  explicit EnergyMeter(const std::string& root = "");

  bool available() const { return !packages_.empty(); }
  // Of all packages since this was made, whoever used it; 0 where nothing can be read. The counters
  // go round (every few minutes under load, at the earliest): ask more often than that.
  double Joules();

 private:
  struct Package {
    std::string file;  // energy_uj
    uint64_t seen_uj = 0, range_uj = 0;
  };
  std::vector<Package> packages_;
  double joules_ = 0;
};

}  // namespace sluice
#endif  // SLUICE_SRC_MACHINE_ENERGY_H_
