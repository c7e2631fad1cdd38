// Boost.JSON compiled from its headers, once: no binary package to find, and
// the ARM cross build gets it too.
#include <boost/json/src.hpp>
