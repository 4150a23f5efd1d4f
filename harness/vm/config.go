// SPDX-License-Identifier: Apache-2.0

// Package vm starts virtual machines under QEMU, for what the kernel of the machine at hand cannot show: other
// kernels, modules, whole nodes. Invariant: a machine has no network but the tap devices of a namespace that the
// harness made, and nothing of it outlives its Stop, its namespace or the process that started it.
package vm

import (
	"cmp"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"

	"github.com/beep-lb/beep/harness/netns"
	"github.com/beep-lb/beep/harness/require"
)

// EnvAccel names the environment variable that chooses QEMU's accelerator: tcg (emulation, the default) or kvm. It is
// never guessed from /dev/kvm: where virtual machines run within virtual machines that may be there and hang each guest.
const EnvAccel = "BEEP_VM_ACCEL"

// emulator is QEMU's program for the only architecture whose kernels ci/kernels lists.
const emulator = "qemu-system-x86_64"

// Config describes a machine. Its kernel is started directly, without a boot loader; its first serial line is the
// kernel's console and the log.
type Config struct {
	Name      string // shows in errors and in the process's arguments
	Kernel    string // path of a vmlinuz
	Initrd    string // path of one or several cpio archives, one after another, compressed or not; "" is none
	Cmdline   string // appended to what the console needs
	MemoryMiB int    // 0 is 1024
	CPUs      int    // 0 is 1
	Disks     []Disk // vda, vdb… in this order
	NICs      []NIC
	NS        *netns.NS // in which QEMU runs and NICs has its taps; nil is one of its own, without any device
	Ports     []string  // names of virtio-console ports, which Machine.Port opens; /dev/vport0p1… in this order
	Reboots   bool      // a reboot starts the guest again; otherwise that, and a panic, end the machine
	Log       string    // path of a file that gets the serial line's output as it comes; "" is none
}

// Disk is a virtio block device.
type Disk struct {
	Path     string
	Format   string // raw or qcow2
	ReadOnly bool
	Snapshot bool // what the guest writes goes to a temporary file and is lost with the machine
}

// NIC is a virtio network device behind a tap device that is there already.
type NIC struct {
	Tap string // name in the machine's namespace
	MAC string // 02:00:… by which the guest tells its devices apart; "" is QEMU's choice
}

// Require needs QEMU.
func Require(tb require.TB) {
	tb.Helper()
	require.Root(tb)
	require.Tool(tb, emulator)
}

// validate names every mistake at once.
func (c *Config) validate() error {
	var errs []error
	wrong := func(format string, args ...any) { errs = append(errs, fmt.Errorf(format, args...)) }
	if c.Name == "" || strings.ContainsAny(c.Name, ", /") {
		wrong("the name %q is empty or holds a comma, a space or a slash", c.Name)
	}
	paths := []string{c.Kernel}
	if c.Initrd != "" {
		paths = append(paths, c.Initrd)
	}
	for _, disk := range c.Disks {
		paths = append(paths, disk.Path)
		if disk.Format != "raw" && disk.Format != "qcow2" {
			wrong("disk %s: format %q is neither raw nor qcow2", disk.Path, disk.Format)
		}
	}
	for _, path := range paths {
		// QEMU doubles commas in its options; no path of ours needs one.
		if strings.Contains(path, ",") {
			wrong("the path %q holds a comma", path)
		} else if _, err := os.Stat(path); err != nil {
			errs = append(errs, err)
		}
	}
	if len(c.NICs) > 0 && c.NS == nil {
		wrong("NICs without the namespace that holds their taps")
	}
	if accel := os.Getenv(EnvAccel); accel != "" && accel != "tcg" && accel != "kvm" {
		wrong("%s=%s: it is tcg or kvm", EnvAccel, accel)
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("machine %q: %w", c.Name, err)
	}
	return nil
}

// commandLine has the kernel print to the serial line and end at a panic. It does not try whether its timer ticks within
// so many turns of a loop: an emulated one on a busy machine may not, and the kernel would give up.
const commandLine = "console=ttyS0 panic=-1 no_timer_check"

// args are QEMU's. ports are the unix sockets that listen for the machine's ports.
func (c *Config) args(ports []string) []string {
	args := []string{"-name", c.Name, "-nodefaults", "-no-user-config", "-display", "none", "-machine", "q35"}
	if os.Getenv(EnvAccel) == "kvm" {
		args = append(args, "-accel", "kvm", "-cpu", "host")
	} else {
		// Of threads that emulate one processor each, one may meet code that another has just patched, as the kernel does for its
		// static keys, and the guest dies of a breakpoint that is no longer any: so one thread takes turns. Five levels of page
		// tables would only cost time.
		args = append(args, "-accel", "tcg,thread=single", "-cpu", "max,la57=off")
	}
	args = append(args, "-smp", strconv.Itoa(max(c.CPUs, 1)), "-m", strconv.Itoa(cmp.Or(c.MemoryMiB, 1024)),
		"-kernel", c.Kernel, "-append", strings.TrimSpace(commandLine+" "+c.Cmdline))
	if c.Initrd != "" {
		args = append(args, "-initrd", c.Initrd)
	}
	if !c.Reboots {
		args = append(args, "-no-reboot")
	}
	args = append(args, "-chardev", "stdio,id=console,signal=off", "-serial", "chardev:console",
		"-object", "rng-random,id=random,filename=/dev/urandom", "-device", "virtio-rng-pci,rng=random")
	for _, disk := range c.Disks {
		args = append(args, "-drive", fmt.Sprintf("if=virtio,file=%s,format=%s,readonly=%s,snapshot=%s,cache=unsafe",
			disk.Path, disk.Format, onOff(disk.ReadOnly), onOff(disk.Snapshot)))
	}
	for i, nic := range c.NICs {
		// Nobody boots from the network, and the ROM for it is a package of its own.
		device := fmt.Sprintf("virtio-net-pci,netdev=nic%d,romfile=", i)
		if nic.MAC != "" {
			device += ",mac=" + nic.MAC
		}
		args = append(args, "-netdev", fmt.Sprintf("tap,id=nic%d,ifname=%s,script=no,downscript=no", i, nic.Tap), "-device", device)
	}
	if len(ports) > 0 {
		args = append(args, "-device", "virtio-serial-pci")
	}
	for i, socket := range ports {
		args = append(args, "-chardev", fmt.Sprintf("socket,id=port%d,path=%s,server=off", i, socket),
			"-device", fmt.Sprintf("virtserialport,chardev=port%d,name=%s", i, c.Ports[i]))
	}
	return args
}

func onOff(on bool) string {
	if on {
		return "on"
	}
	return "off"
}
