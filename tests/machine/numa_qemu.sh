#!/bin/sh
# Runs the NUMA tests in a virtual machine with two memory nodes of one CPU each.
#
#   tests/machine/numa_qemu.sh KERNEL TEST_PROGRAM [FILTER]
#
# Needs qemu-system-x86 and a static busybox; 3 minutes under emulation (NUMA_QEMU_ACCEL=kvm: real
# CPUs). Not part of .ci/run. The exit code is that of the tests.
# KERNEL: a bzImage that boots without modules (Debian: `apt-get download` the package that
# linux-image-cloud-amd64 depends on, `dpkg -x` it, boot/vmlinuz-*). TEST_PROGRAM: engine_tests or
# machine_tests; without KVM, of a build with AVX2 kernels (preset ci), because emulated CPUs have
# no AVX-512.
set -eu
kernel=$1
program=$2
filter=${3:-*Numa*}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
root=$work/root
mkdir -p "$root/bin" "$root/proc" "$root/sys" "$root/tmp" "$root/dev"
cp "$(command -v busybox)" "$root/bin/busybox"
cp "$program" "$root/tests"
# The libraries the program names, at their places.
ldd "$program" | grep -o '/[^ ]*' | while read -r library; do
  mkdir -p "$root$(dirname "$library")"
  cp -L "$library" "$root$library"
done
cat > "$root/init" <<INIT
#!/bin/busybox sh
/bin/busybox --install -s /bin
mount -t proc none /proc
mount -t sysfs none /sys
mount -t devtmpfs none /dev
mount -t tmpfs none /tmp
export HOME=/tmp PATH=/bin
echo "nodes: \$(cat /sys/devices/system/node/online)"
/tests --gtest_filter='$filter'
echo "exit code \$?"
poweroff -f
INIT
chmod +x "$root/init"
ln -s /bin/busybox "$root/bin/sh"
sed -i 's|^#!.*|#!/bin/sh|' "$root/init"
(cd "$root" && find . | busybox cpio -o -H newc 2> /dev/null | gzip -1) > "$work/initrd"

accel=tcg
cpu=max
if [ "${NUMA_QEMU_ACCEL:-tcg}" = kvm ]; then  # not by default: inside another machine it may hang
  accel=kvm
  cpu=host,-arch-capabilities  # which some nested hosts refuse to set
fi
echo "accelerator: $accel"
qemu-system-x86_64 -accel $accel -cpu $cpu -m 2G -smp 2,sockets=2,cores=1,threads=1 \
  -object memory-backend-ram,id=m0,size=1G -object memory-backend-ram,id=m1,size=1G \
  -numa node,nodeid=0,cpus=0,memdev=m0 -numa node,nodeid=1,cpus=1,memdev=m1 \
  -kernel "$kernel" -initrd "$work/initrd" -append "console=ttyS0 quiet panic=-1" \
  -nographic -no-reboot < /dev/null | tee "$work/log"
grep -q '^exit code 0' "$work/log"
