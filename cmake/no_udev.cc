// Five functions of libudev, which Debian has no static library of. The static
// hwloc of cross builds asks them for the names of disks, and we ask it for none.
extern "C" {
void* udev_new() { return nullptr; }
void* udev_unref(void*) { return nullptr; }
void* udev_device_new_from_subsystem_sysname(void*, const char*, const char*) { return nullptr; }
const char* udev_device_get_property_value(void*, const char*) { return nullptr; }
void* udev_device_unref(void*) { return nullptr; }
}
