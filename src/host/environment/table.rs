//! The one list of parameters: name, unit, meaning, source, privilege and stability of each.
//!
//! What a row is called here is its stability: `fixed` (another value means another machine or build, so that earlier
//! trials are not mixed with later ones), `setting` (may be changed by hand), `volatile` (changes by itself). A row that
//! only root can read is never fixed: reading the same machine as another user must not make it another machine.
//!
//! A row that is added here is in the record, the report, the documentation and the tests.

use super::{
    cgroup, clock, firmware, libraries, memory, process, processor,
    source::Source::{self, *},
    storage, system,
};
use crate::{host::build, record::environment::Stability};

/// One parameter.
pub struct Row {
    /// Dotted name; the first part is its group.
    pub key: &'static str,
    /// Unit of the value; empty for words.
    pub unit: &'static str,
    /// What it is, and where needed why it matters.
    pub meaning: &'static str,
    /// Who may read it.
    pub privilege: Privilege,
    /// What a change means.
    pub stability: Stability,
    pub(super) source: Source,
}

impl Row {
    /// Returns where it is read: a path, a pattern, a system call, the build.
    pub fn source(&self) -> String {
        self.source.describe()
    }

    /// Returns the part of the name before the first dot.
    pub fn group(&self) -> &'static str {
        self.key.split('.').next().unwrap_or(self.key)
    }

    const fn by_root(mut self) -> Self {
        self.privilege = Privilege::Root;
        self
    }
}

/// Who may read a parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Privilege {
    /// Every user.
    Any,
    /// As a rule only root.
    Root,
}

/// Iterates over every parameter, in the order of the record.
pub fn table() -> impl Iterator<Item = &'static Row> {
    TABLE.iter().copied().flatten()
}

const fn fixed(key: &'static str, unit: &'static str, meaning: &'static str, source: Source) -> Row {
    Row { key, unit, meaning, privilege: Privilege::Any, stability: Stability::Fixed, source }
}

const fn setting(key: &'static str, unit: &'static str, meaning: &'static str, source: Source) -> Row {
    Row { key, unit, meaning, privilege: Privilege::Any, stability: Stability::Setting, source }
}

const fn volatile(key: &'static str, unit: &'static str, meaning: &'static str, source: Source) -> Row {
    Row { key, unit, meaning, privilege: Privilege::Any, stability: Stability::Volatile, source }
}

static TABLE: [&[Row]; 4] = [MACHINE, POWER, KERNEL, PROCESS_AND_BUILD];

#[rustfmt::skip]
static MACHINE: &[Row] = &[
    fixed("cpu.architecture", "", "instruction set", Call("uname", processor::architecture)),
    fixed("cpu.vendor", "", "maker", FirstOf(&[CpuInfo("vendor_id"), CpuInfo("CPU implementer")])),
    fixed("cpu.model", "", "name that the processor gives itself", FirstOf(&[CpuInfo("model name"), CpuInfo("CPU part"), CpuInfo("uarch")])),
    fixed("cpu.family", "", "family number", FirstOf(&[CpuInfo("cpu family"), CpuInfo("CPU architecture")])),
    fixed("cpu.model_number", "", "model number within the family", FirstOf(&[CpuInfo("model"), CpuInfo("CPU variant")])),
    fixed("cpu.stepping", "", "revision of the silicon", FirstOf(&[CpuInfo("stepping"), CpuInfo("CPU revision")])),
    fixed("cpu.microcode", "", "revision of the microcode; it carries mitigations that change speed", FirstOf(&[CpuInfo("microcode"), File("/sys/devices/system/cpu/cpu0/microcode/version")])),
    fixed("cpu.flags", "", "features that the kernel uses and shows", FirstOf(&[CpuInfo("flags"), CpuInfo("Features"), CpuInfo("isa")])),
    fixed("cpu.bugs", "", "known flaws of the processor", CpuInfo("bugs")),
    fixed("cpu.address_sizes", "", "width of addresses", CpuInfo("address sizes")),
    fixed("cpu.possible", "", "CPUs that the kernel has room for", List("/sys/devices/system/cpu/possible")),
    fixed("cpu.present", "", "CPUs that exist", List("/sys/devices/system/cpu/present")),
    setting("cpu.online", "", "CPUs that run", List("/sys/devices/system/cpu/online")),
    setting("cpu.offline", "", "CPUs that exist but do not run", Call("/sys/devices/system/cpu/{present,online}", system::offline)),
    setting("cpu.allowed", "", "CPUs in the affinity mask of this process", Call("sched_getaffinity", processor::affinity)),
    setting("cpu.sockets", "", "physical packages with online CPUs", Call("/sys/devices/system/cpu/cpu*/topology/physical_package_id", processor::sockets)),
    setting("cpu.dies", "", "dies with online CPUs", Call("/sys/devices/system/cpu/cpu*/topology/die_id", processor::dies)),
    setting("cpu.cores", "", "cores with online CPUs", Call("/sys/devices/system/cpu/cpu*/topology/thread_siblings_list", processor::cores)),
    setting("cpu.threads", "", "online hardware threads", Call("/sys/devices/system/cpu/online", processor::threads)),
    setting("cpu.socket_map", "", "online CPUs of each socket", Call("/sys/devices/system/cpu/cpu*/topology/physical_package_id", processor::package_map)),
    setting("cpu.sibling_map", "", "online CPUs that share a core", Call("/sys/devices/system/cpu/cpu*/topology/thread_siblings_list", processor::sibling_map)),
    setting("cpu.cluster_map", "", "online CPUs of each cluster within a die", Call("/sys/devices/system/cpu/cpu*/topology/cluster_cpus_list", processor::cluster_map)),
    fixed("cpu.types", "", "performance and efficiency cores of a hybrid processor", Call("/sys/devices/cpu_{core,atom}/cpus", processor::types)),
    fixed("cpu.capacity", "", "relative speed of each CPU, 1024 the fastest", PerCpu("cpu_capacity")),
    fixed("cache.l1d", "", "data cache of level 1 of each core", Call("/sys/devices/system/cpu/cpu*/cache/index*", processor::level1_data)),
    fixed("cache.l1i", "", "instruction cache of level 1 of each core", Call("/sys/devices/system/cpu/cpu*/cache/index*", processor::level1_instruction)),
    fixed("cache.l2", "", "cache of level 2", Call("/sys/devices/system/cpu/cpu*/cache/index*", processor::level2)),
    fixed("cache.l3", "", "cache of level 3", Call("/sys/devices/system/cpu/cpu*/cache/index*", processor::level3)),
    fixed("cache.l4", "", "cache of level 4", Call("/sys/devices/system/cpu/cpu*/cache/index*", processor::level4)),
    setting("cache.sharing", "", "online CPUs that share a cache of each level", Call("/sys/devices/system/cpu/cpu*/cache/index*/shared_cpu_list", processor::cache_sharing)),
    fixed("numa.nodes", "", "memory nodes", List("/sys/devices/system/node/online")),
    setting("numa.cpus", "", "online CPUs of each node", Each("/sys/devices/system/node/node*/cpulist")),
    fixed("numa.distances", "", "relative cost of reaching each node from each, 10 the nearest", Each("/sys/devices/system/node/node*/distance")),
    setting("numa.memory", "KiB", "memory of each node", Call("/sys/devices/system/node/node*/meminfo", memory::node_total)),
    volatile("numa.free", "KiB", "free memory of each node", Call("/sys/devices/system/node/node*/meminfo", memory::node_free)),
    setting("numa.balancing", "", "whether the kernel moves pages towards their users; it stalls threads while it looks", File("/proc/sys/kernel/numa_balancing")),
    setting("numa.zone_reclaim", "", "whether a full node is cleared before another is used", File("/proc/sys/vm/zone_reclaim_mode")),
    setting("numa.policy", "", "where pages of this process go", Call("get_mempolicy", memory::policy)),
    setting("numa.allowed", "", "nodes that this process may use", Field("/proc/self/status", "Mems_allowed_list")),
    fixed("memory.total", "MiB", "memory of the machine", Call("/proc/meminfo MemTotal", memory::total)),
    volatile("memory.available", "KiB", "memory that programs can have without swapping", Field("/proc/meminfo", "MemAvailable")),
    volatile("memory.free", "KiB", "memory that is not used at all", Field("/proc/meminfo", "MemFree")),
    volatile("memory.committed", "KiB", "memory promised to programs", Field("/proc/meminfo", "Committed_AS")),
    volatile("memory.cached", "KiB", "files kept in memory", Field("/proc/meminfo", "Cached")),
    setting("memory.map_limit", "", "separate mappings that a process may have", File("/proc/sys/vm/max_map_count")),
    fixed("memory.page_size", "B", "size of a base page", Call("sysconf(_SC_PAGESIZE)", memory::page_size)),
    setting("memory.modules", "", "size, type and speed of the memory modules", Call("/sys/firmware/dmi/tables/DMI", memory::modules)).by_root(),
    fixed("firmware.board_vendor", "", "maker of the board", File("/sys/class/dmi/id/board_vendor")),
    fixed("firmware.board_name", "", "board", File("/sys/class/dmi/id/board_name")),
    fixed("firmware.board_version", "", "revision of the board", File("/sys/class/dmi/id/board_version")),
    fixed("firmware.system_vendor", "", "maker of the machine; a cloud provider's name in its machines", File("/sys/class/dmi/id/sys_vendor")),
    fixed("firmware.product_name", "", "model of the machine; the instance type in some clouds", FirstOf(&[File("/sys/class/dmi/id/product_name"), File("/proc/device-tree/model")])),
    fixed("firmware.bios_vendor", "", "maker of the firmware", File("/sys/class/dmi/id/bios_vendor")),
    fixed("firmware.bios_version", "", "version of the firmware", File("/sys/class/dmi/id/bios_version")),
    fixed("firmware.bios_date", "", "date of the firmware", File("/sys/class/dmi/id/bios_date")),
    fixed("firmware.boot_mode", "", "whether UEFI booted the system", Call("/sys/firmware/efi", firmware::boot_mode)),
    fixed("virtualisation.flag", "", "whether the processor says that a hypervisor runs it", Call("/proc/cpuinfo flags", firmware::hypervisor_flag)),
    fixed("virtualisation.hypervisor", "", "signature of the hypervisor", Call("CPUID 0x40000000", firmware::hypervisor_signature)),
    fixed("virtualisation.type", "", "hypervisor that the kernel names", File("/sys/hypervisor/type")),
    fixed("virtualisation.container", "", "container runtime that left a mark", Call("/run/systemd/container, /.dockerenv, /run/.containerenv, /proc/self/cgroup", firmware::container)),
    setting("cgroup.version", "", "version of the control groups", Call("/proc/self/cgroup", cgroup::version)),
    volatile("cgroup.paths", "", "groups of this process", Call("/proc/self/cgroup", cgroup::paths)),
    setting("cgroup.cpu_max", "us", "CPU time per period that the groups allow: quota and period; a quota stops all threads at once", Call("cpu.max, else cpu.cfs_quota_us and cpu.cfs_period_us", cgroup::cpu_max)),
    setting("cgroup.cpu_weight", "", "share of the CPU time under contention", Call("cpu.weight, else cpu.shares", cgroup::cpu_weight)),
    setting("cgroup.cpus", "", "CPUs that the group may use", Call("cpuset.cpus.effective, else cpuset.effective_cpus", cgroup::cpus)),
    setting("cgroup.nodes", "", "memory nodes that the group may use", Call("cpuset.mems.effective, else cpuset.effective_mems", cgroup::mems)),
    setting("cgroup.memory_max", "B", "memory at which the group is killed", Call("memory.max, else memory.limit_in_bytes", cgroup::memory_max)),
    setting("cgroup.memory_high", "B", "memory at which the group is slowed", Call("memory.high, else memory.soft_limit_in_bytes", cgroup::memory_high)),
    setting("cgroup.swap_max", "B", "swap that the group may use", Call("memory.swap.max, else memory.memsw.limit_in_bytes", cgroup::swap_max)),
    setting("cgroup.pids_max", "", "threads that the group may have", Call("pids.max", cgroup::pids_max)),
    volatile("cgroup.memory", "B", "memory that the group uses", Call("memory.current, else memory.usage_in_bytes", cgroup::memory_now)),
    volatile("cgroup.cpu_stat", "", "periods, and how many of them the quota cut short (nr_throttled)", Call("cpu.stat", cgroup::cpu_stat)),
    setting("clock.source", "", "hardware behind the kernel's clock", File("/sys/devices/system/clocksource/clocksource0/current_clocksource")),
    setting("clock.available", "", "hardware that could be", File("/sys/devices/system/clocksource/clocksource0/available_clocksource")),
    fixed("clock.tsc_flags", "", "what makes the time stamp counter usable as a clock", Call("/proc/cpuinfo flags", processor::tsc_flags)),
    fixed("clock.resolution", "ns", "resolution of the monotonic clock", Call("clock_getres(CLOCK_MONOTONIC)", clock::resolution)),
    volatile("clock.read_cost", "ns", "time that one read of the monotonic clock takes", Call("measured", clock::read_cost)),
];

#[rustfmt::skip]
static POWER: &[Row] = &[
    setting("frequency.driver", "", "driver that sets the frequency", PerCpu("cpufreq/scaling_driver")),
    setting("frequency.governor", "", "rule that chooses the frequency", PerCpu("cpufreq/scaling_governor")),
    setting("frequency.minimum", "kHz", "lower bound set for the governor", PerCpu("cpufreq/scaling_min_freq")),
    setting("frequency.maximum", "kHz", "upper bound set for the governor", PerCpu("cpufreq/scaling_max_freq")),
    fixed("frequency.hardware_minimum", "kHz", "lowest frequency of the hardware", PerCpu("cpufreq/cpuinfo_min_freq")),
    setting("frequency.hardware_maximum", "kHz", "highest frequency of the hardware; turbo counts while it is on", PerCpu("cpufreq/cpuinfo_max_freq")),
    fixed("frequency.base", "kHz", "frequency that is sustained without turbo", PerCpu("cpufreq/base_frequency")),
    volatile("frequency.current", "kHz", "frequency at the moment", Spread("cpufreq/scaling_cur_freq")),
    volatile("frequency.reported", "MHz", "frequency that the kernel last computed", CpuInfo("cpu MHz")),
    setting("frequency.preference", "", "hint between energy and performance", PerCpu("cpufreq/energy_performance_preference")),
    setting("frequency.energy_bias", "", "the same as a number, 0 performance to 15 saving", PerCpu("power/energy_perf_bias")),
    setting("frequency.boost", "", "whether frequencies above the base are allowed (1)", File("/sys/devices/system/cpu/cpufreq/boost")),
    setting("frequency.no_turbo", "", "whether they are forbidden (1)", File("/sys/devices/system/cpu/intel_pstate/no_turbo")),
    setting("frequency.driver_mode", "", "mode of the P-state driver", FirstOf(&[File("/sys/devices/system/cpu/intel_pstate/status"), File("/sys/devices/system/cpu/amd_pstate/status")])),
    setting("frequency.turbo_register", "", "turbo as the processor itself has it", Call("/dev/cpu/*/msr 0x1a0 (Intel), 0xc0010015 (AMD)", processor::turbo_register)).by_root(),
    setting("smt.active", "", "whether cores run several hardware threads (1)", File("/sys/devices/system/cpu/smt/active")),
    setting("smt.control", "", "whether that can be changed", File("/sys/devices/system/cpu/smt/control")),
    setting("idle.driver", "", "driver of the idle states", File("/sys/devices/system/cpu/cpuidle/current_driver")),
    setting("idle.governor", "", "rule that chooses them", FirstOf(&[File("/sys/devices/system/cpu/cpuidle/current_governor"), File("/sys/devices/system/cpu/cpuidle/current_governor_ro")])),
    setting("idle.states", "", "idle states, the time to leave each, and which are disabled", Call("/sys/devices/system/cpu/cpu*/cpuidle/state*/{name,latency,disable}", processor::idle_states)),
    setting("idle.latency_limit", "us", "longest wake-up time asked for each CPU; 0 is no limit", PerCpu("power/pm_qos_resume_latency_us")),
    setting("prefetch.hardware", "", "hardware prefetchers", Call("/dev/cpu/*/msr 0x1a4", processor::prefetchers)).by_root(),
    volatile("thermal.core_throttles", "", "times that cores were slowed for heat since boot", Sum("thermal_throttle/core_throttle_count")),
    volatile("thermal.package_throttles", "", "the same for packages, counted by each of their CPUs", Sum("thermal_throttle/package_throttle_count")),
    volatile("thermal.temperatures", "degrees C", "temperatures", Call("/sys/class/hwmon/hwmon*/temp*_input, /sys/class/thermal/thermal_zone*/temp", system::temperatures)),
    setting("power.caps", "", "long-term power limits of the packages", Call("/sys/class/powercap/intel-rapl:*/constraint_0_power_limit_uw", system::power_caps)),
    setting("power.profile", "", "power profile of the firmware", File("/sys/firmware/acpi/platform_profile")),
    setting("power.mains", "", "whether external power is connected (1)", Each("/sys/class/power_supply/*/online")),
    volatile("power.battery", "", "what batteries do", Each("/sys/class/power_supply/*/status")),
    volatile("power.energy_counters", "uJ", "energy counters of the packages since they wrapped", Each("/sys/class/powercap/intel-rapl:*/energy_uj")).by_root(),
];

#[rustfmt::skip]
static KERNEL: &[Row] = &[
    fixed("os.release", "", "distribution and its version", FirstOf(&[Field("/etc/os-release", "PRETTY_NAME"), Field("/usr/lib/os-release", "PRETTY_NAME")])),
    fixed("os.hostname", "", "name of the machine: twins of one model are still two machines", File("/proc/sys/kernel/hostname")),
    volatile("os.uptime", "s", "time since boot", Call("/proc/uptime", system::uptime)),
    setting("os.boot_id", "", "random name of this boot", File("/proc/sys/kernel/random/boot_id")),
    fixed("kernel.name", "", "name of the kernel", File("/proc/sys/kernel/ostype")),
    fixed("kernel.release", "", "release of the kernel", File("/proc/sys/kernel/osrelease")),
    fixed("kernel.version", "", "build of the kernel", File("/proc/sys/kernel/version")),
    fixed("kernel.compiler", "", "who built it with what", File("/proc/version")),
    setting("kernel.command_line", "", "options that it was booted with", File("/proc/cmdline")),
    setting("kernel.isolated_cpus", "", "CPUs kept from the scheduler's balancing", List("/sys/devices/system/cpu/isolated")),
    setting("kernel.tickless_cpus", "", "CPUs without a tick while one thread runs", List("/sys/devices/system/cpu/nohz_full")),
    setting("kernel.rcu_nocbs", "", "CPUs whose deferred work runs elsewhere", BootOption("rcu_nocbs")),
    setting("kernel.mitigations_option", "", "what was asked of the mitigations", BootOption("mitigations")),
    setting("kernel.mitigations", "", "what is done about each flaw of the processor", Each("/sys/devices/system/cpu/vulnerabilities/*")),
    fixed("kernel.tick_rate", "Hz", "ticks a second (CONFIG_HZ)", Call("clock_getres(CLOCK_MONOTONIC_COARSE)", clock::tick_rate)),
    setting("kernel.preemption", "", "preemption that the kernel was built and booted with", Call("/proc/sys/kernel/version, /proc/cmdline preempt", system::preemption)),
    setting("kernel.preemption_now", "", "preemption in effect, where it can be changed at run time", Chosen("/sys/kernel/debug/sched/preempt")).by_root(),
    fixed("kernel.config_digest", "", "SHA-256 of the kernel's configuration", Call("/proc/config.gz, else /boot/config-*", system::kernel_config_digest)),
    fixed("kernel.config", "", "settings of the kernel's build that change measurements", Call("/boot/config-*", system::kernel_options)),
    setting("kernel.aslr", "", "address space randomisation: 0 off, 1 without heap, 2 full", File("/proc/sys/kernel/randomize_va_space")),
    setting("kernel.watchdog", "", "whether a watchdog occupies a hardware counter (1)", File("/proc/sys/kernel/nmi_watchdog")),
    setting("kernel.tainted", "", "bits that say what has departed from a plain kernel", File("/proc/sys/kernel/tainted")),
    setting("kernel.kptr_restrict", "", "whether kernel addresses are hidden from profiles", File("/proc/sys/kernel/kptr_restrict")),
    setting("kernel.lockdown", "", "whether the kernel is closed to root", Chosen("/sys/kernel/security/lockdown")),
    setting("kernel.timer_migration", "", "whether timers move to busy CPUs", File("/proc/sys/kernel/timer_migration")),
    setting("thp.enabled", "", "who gets transparent huge pages", Chosen("/sys/kernel/mm/transparent_hugepage/enabled")),
    setting("thp.defrag", "", "who waits for them", Chosen("/sys/kernel/mm/transparent_hugepage/defrag")),
    setting("thp.shared", "", "whether shared memory gets them", Chosen("/sys/kernel/mm/transparent_hugepage/shmem_enabled")),
    setting("thp.zero_page", "", "whether untouched memory reads from a huge page of zeros", File("/sys/kernel/mm/transparent_hugepage/use_zero_page")),
    setting("thp.sizes", "", "who gets pages of each size", EachChosen("/sys/kernel/mm/transparent_hugepage/hugepages-*/enabled")),
    setting("thp.background", "", "whether pages are joined in the background (1)", File("/sys/kernel/mm/transparent_hugepage/khugepaged/defrag")),
    volatile("thp.in_use", "KiB", "anonymous memory in huge pages", Field("/proc/meminfo", "AnonHugePages")),
    volatile("thp.in_use_here", "KiB", "the same of this process", Field("/proc/self/smaps_rollup", "AnonHugePages")),
    setting("thp.pools", "", "reserved huge pages of each size", Call("/sys/kernel/mm/hugepages/hugepages-*/{nr,free}_hugepages", memory::huge_page_pools)),
    setting("sched.autogroup", "", "whether each session is scheduled as one; it makes nice levels between sessions void", File("/proc/sys/kernel/sched_autogroup_enabled")),
    setting("sched.autogroup_here", "", "the group of this session and its nice level", File("/proc/self/autogroup")),
    setting("sched.base_slice", "ns", "time that a thread runs before others get a turn", FirstOf(&[File("/sys/kernel/debug/sched/base_slice_ns"), File("/sys/kernel/debug/sched/min_granularity_ns"), File("/proc/sys/kernel/sched_min_granularity_ns")])).by_root(),
    setting("sched.wakeup_granularity", "ns", "head start before a waking thread displaces a running one", FirstOf(&[File("/sys/kernel/debug/sched/wakeup_granularity_ns"), File("/proc/sys/kernel/sched_wakeup_granularity_ns")])).by_root(),
    setting("sched.migration_cost", "ns", "time for which a thread counts as cache-hot", FirstOf(&[File("/sys/kernel/debug/sched/migration_cost_ns"), File("/proc/sys/kernel/sched_migration_cost_ns")])).by_root(),
    setting("sched.features", "", "switches of the scheduler", File("/sys/kernel/debug/sched/features")).by_root(),
    setting("sched.real_time_share", "us", "time per second that real-time threads may take", File("/proc/sys/kernel/sched_rt_runtime_us")),
    setting("sched.extension", "", "whether a loaded program schedules", File("/sys/kernel/sched_ext/state")),
    setting("sched.bandwidth_slice", "us", "portion in which quotas are handed to CPUs", File("/proc/sys/kernel/sched_cfs_bandwidth_slice_us")),
    setting("perf.paranoid", "", "who may count events: -1 all, 2 only their own user code, 3 and above nobody", File("/proc/sys/kernel/perf_event_paranoid")),
    volatile("perf.max_sample_rate", "Hz", "sampling rate that the kernel has come down to", File("/proc/sys/kernel/perf_event_max_sample_rate")),
    setting("perf.cpu_time_max", "%", "CPU time that sampling may take", File("/proc/sys/kernel/perf_cpu_time_max_percent")),
    setting("perf.locked_memory", "KiB", "memory that a user may lock for samples", File("/proc/sys/kernel/perf_event_mlock_kb")),
    setting("perf.units", "", "types of the counting units; `cpu` is the processor's own", Each("/sys/bus/event_source/devices/*/type")),
    setting("perf.direct_reads", "", "whether programs may read counters without the kernel", File("/sys/bus/event_source/devices/cpu/rdpmc")),
    setting("irq.default_affinity", "", "CPUs that new interrupts may use, as a mask", File("/proc/irq/default_smp_affinity")),
    setting("irq.affinity", "", "CPUs that interrupts may use", Call("/proc/irq/*/smp_affinity_list", system::irq_affinity)),
    setting("irq.balancing", "", "whether irqbalance moves interrupts", Call("/run/irqbalance*", system::irqbalance)),
    volatile("irq.count", "", "interrupts since boot", Call("/proc/stat intr", system::interrupts)),
    setting("swap.total", "KiB", "size of the swap", Field("/proc/meminfo", "SwapTotal")),
    volatile("swap.free", "KiB", "swap that is not used", Field("/proc/meminfo", "SwapFree")),
    setting("swap.devices", "", "where it is", Call("/proc/swaps", memory::swap_devices)),
    setting("swap.swappiness", "", "inclination to swap programs rather than drop files", File("/proc/sys/vm/swappiness")),
    setting("swap.overcommit", "", "whether more memory is promised than there is: 0 within reason, 1 always, 2 never", File("/proc/sys/vm/overcommit_memory")),
    setting("swap.overcommit_ratio", "%", "memory that counts under 2", File("/proc/sys/vm/overcommit_ratio")),
    setting("swap.compressed", "", "whether pages are compressed before they are swapped", File("/sys/module/zswap/parameters/enabled")),
    setting("swap.page_merging", "", "whether equal pages are merged (1)", File("/sys/kernel/mm/ksm/run")),
    volatile("swap.pages_in", "", "pages swapped in since boot", Field("/proc/vmstat", "pswpin")),
    volatile("swap.pages_out", "", "pages swapped out since boot", Field("/proc/vmstat", "pswpout")),
    volatile("swap.major_faults", "", "faults that waited for a disk since boot", Field("/proc/vmstat", "pgmajfault")),
    volatile("load.average", "", "threads that ran or waited over 1, 5 and 15 minutes; running and all threads; last process", File("/proc/loadavg")),
    volatile("load.running", "", "threads that run or could, this one included", Field("/proc/stat", "procs_running")),
    volatile("load.blocked", "", "threads that wait for a disk", Field("/proc/stat", "procs_blocked")),
    volatile("load.cpu_times", "ticks", "CPU time since boot by use", Call("/proc/stat cpu", system::cpu_times)),
    volatile("load.context_switches", "", "context switches since boot", Field("/proc/stat", "ctxt")),
    volatile("load.forks", "", "processes started since boot", Field("/proc/stat", "processes")),
    volatile("load.cpu_pressure", "", "share of time in which threads waited for a CPU", File("/proc/pressure/cpu")),
    volatile("load.memory_pressure", "", "share of time in which threads waited for memory", File("/proc/pressure/memory")),
    volatile("load.io_pressure", "", "share of time in which threads waited for a disk", File("/proc/pressure/io")),
    volatile("load.irq_pressure", "", "share of time that interrupts took", File("/proc/pressure/irq")),
    setting("storage.filesystem", "", "file system of the reports", Call("/proc/self/mountinfo", storage::filesystem)),
    setting("storage.options", "", "its mount options", Call("/proc/self/mountinfo", storage::options)),
    setting("storage.scheduler", "", "scheduler of its disk, the one in use in brackets", Call("/sys/dev/block/*/queue/scheduler", storage::scheduler)),
    volatile("storage.free", "MiB", "free space for the reports", Call("statvfs", storage::free_space)),
    setting("storage.dirty_ratio", "%", "share of memory that unwritten files may take", File("/proc/sys/vm/dirty_ratio")),
    volatile("storage.dirty", "KiB", "files not yet written", Field("/proc/meminfo", "Dirty")),
];

#[rustfmt::skip]
static PROCESS_AND_BUILD: &[Row] = &[
    volatile("process.arguments", "", "command line of this process", Call("/proc/self/cmdline", process::arguments)),
    volatile("process.folder", "", "working folder of this process; workers have a fixed one", Call("getcwd", process::working_folder)),
    setting("process.user", "", "effective user", Call("geteuid, /etc/passwd", process::user)),
    setting("process.capabilities", "", "rights beyond a user's, as a mask", Field("/proc/self/status", "CapEff")),
    setting("process.seccomp", "", "whether system calls are filtered (2); each one then costs more", Field("/proc/self/status", "Seccomp")),
    setting("process.nice", "", "nice level of this process; a trial records its own", Call("getpriority", process::nice)),
    setting("process.scheduler", "", "scheduling policy", Call("sched_getscheduler", process::scheduler)),
    setting("process.oom_score", "", "adjustment of the chance to be killed when memory runs out", File("/proc/self/oom_score_adj")),
    setting("process.personality", "", "deviations from the usual execution domain", Call("/proc/self/personality", process::personality)),
    setting("process.timer_slack", "ns", "time by which sleeps may be late", Call("prctl(PR_GET_TIMERSLACK)", process::timer_slack)),
    setting("process.huge_pages_disabled", "", "whether transparent huge pages are off for this process", Call("prctl(PR_GET_THP_DISABLE)", process::huge_pages_disabled)),
    setting("process.limit_stack", "B", "limit of the main stack", Limit("Max stack size")),
    setting("process.limit_memory", "B", "limit of the address space", Limit("Max address space")),
    setting("process.limit_data", "B", "limit of the heap", Limit("Max data size")),
    setting("process.limit_locked", "B", "limit of locked memory", Limit("Max locked memory")),
    setting("process.limit_threads", "", "limit of the user's threads", Limit("Max processes")),
    setting("process.limit_files", "", "limit of open files", Limit("Max open files")),
    setting("process.limit_file_size", "B", "limit of a file's size", Limit("Max file size")),
    setting("process.limit_core", "B", "limit of a core dump; writing one takes time after a crash", Limit("Max core file size")),
    setting("process.limit_cpu", "s", "limit of CPU time", Limit("Max cpu time")),
    setting("process.limit_nice", "", "highest priority that may be asked: 20 minus this is the lowest nice level", Limit("Max nice priority")),
    setting("process.limit_real_time", "", "highest real-time priority that may be asked", Limit("Max realtime priority")),
    setting("process.variables", "", "count of environment variables; workers get a clean environment", Call("environ", process::variable_count)),
    setting("process.variable_bytes", "B", "their size, which moves the stack", Call("environ", process::variable_bytes)),
    setting("process.variable_digest", "", "SHA-256 of the sorted environment", Call("environ", process::variable_digest)),
    setting("process.variable_values", "", "variables that allocators, loaders and runtimes read; others may be secret", Call("environ", process::variables)),
    setting("process.executable", "", "path of this executable", Call("/proc/self/exe", libraries::own_path)),
    setting("process.executable_size", "B", "its size", Call("/proc/self/exe", libraries::own_size)),
    setting("process.executable_sha256", "", "its digest", Call("/proc/self/exe", libraries::own_digest)),
    setting("process.build_id", "", "its build id", Call("/proc/self/exe", libraries::own_build_id)),
    setting("build.version", "", "version of rare", Build("the build", build::VERSION)),
    setting("build.commit", "", "commit of its sources", Build("git rev-parse HEAD at build time", build::COMMIT)),
    setting("build.branch", "", "branch of its sources", Build("git rev-parse --abbrev-ref HEAD at build time", build::BRANCH)),
    setting("build.changes", "", "how its sources differ from the commit", Build("git status, git diff at build time", build::CHANGES)),
    setting("build.submodules", "", "commits of submodules", Build("git submodule status at build time", build::SUBMODULES)),
    setting("build.lock_sha256", "", "digest of the locked dependencies", Call("Cargo.lock at build time", lock_digest)),
    fixed("build.rustc", "", "compiler", Build("rustc -vV at build time", build::RUSTC)),
    fixed("build.target", "", "what it compiled for", Build("TARGET", build::TARGET)),
    setting("build.host", "", "what it compiled on", Build("HOST", build::HOST)),
    fixed("build.flags", "", "flags of every compilation: target CPU, profile guidance and the like", Build("CARGO_ENCODED_RUSTFLAGS", build::FLAGS)),
    fixed("build.features", "", "instruction set extensions that the compiler might use", Build("CARGO_CFG_TARGET_FEATURE", build::FEATURES)),
    fixed("build.profile", "", "profile", Build("PROFILE", build::PROFILE)),
    fixed("build.profile_settings", "", "its settings: link-time optimisation, code generation units and the like", Build("Cargo.toml, CARGO_PROFILE_*", build::PROFILE_SETTINGS)),
    fixed("build.opt_level", "", "optimisation level of rare; structures are optimised in every profile", Build("OPT_LEVEL", build::OPT_LEVEL)),
    fixed("build.debug_assertions", "", "whether assertions for debugging are compiled in", Build("CARGO_CFG_DEBUG_ASSERTIONS", build::DEBUG_ASSERTIONS)),
    fixed("build.debug_info", "", "whether debug information is written", Build("DEBUG", build::DEBUG_INFO)),
    fixed("build.panic", "", "what a panic does", Build("CARGO_CFG_PANIC", build::PANIC)),
    fixed("build.linker", "", "linker", Build("cc -Wl,--version at build time", build::LINKER)),
    fixed("build.c_compiler", "", "compiler of the allocators written in C and C++", Build("cc --version at build time", build::C_COMPILER)),
    setting("build.worker", "", "path of the worker", Call("the command line", libraries::worker_path)),
    fixed("build.worker_sha256", "", "digest of the worker", Call("the worker", libraries::worker_digest)),
    setting("build.worker_build_id", "", "build id of the worker", Call("the worker", libraries::worker_build_id)),
    fixed("libraries.worker", "", "libraries that the worker is linked with", Call("the worker's dynamic section", libraries::worker_libraries)),
    setting("libraries.own", "", "libraries that this executable is linked with", Call("/proc/self/exe dynamic section", libraries::own_libraries)),
    fixed("libraries.libc", "", "version of the C library, whose allocator is `system`", Call("gnu_get_libc_version", libraries::libc_version)),
    fixed("libraries.jemalloc", "", "version of the crate that links jemalloc", Call("Cargo.lock at build time", |_| locked("tikv-jemallocator"))),
    fixed("libraries.mimalloc", "", "version of the crate that links mimalloc", Call("Cargo.lock at build time", |_| locked("mimalloc"))),
    fixed("libraries.snmalloc", "", "version of the crate that links snmalloc", Call("Cargo.lock at build time", |_| locked("snmalloc-rs"))),
    fixed("libraries.crossbeam_epoch", "", "version of the epoch reclamation", Call("Cargo.lock at build time", |_| locked("crossbeam-epoch"))),
    fixed("libraries.seize", "", "version of the hyaline reclamation", Call("Cargo.lock at build time", |_| locked("seize"))),
    fixed("libraries.crossbeam_skiplist", "", "version of the skip list", Call("Cargo.lock at build time", |_| locked("crossbeam-skiplist"))),
    fixed("libraries.parking_lot", "", "version of the locks", Call("Cargo.lock at build time", |_| locked("parking_lot"))),
    setting("tools.valgrind", "", "where valgrind is", Call("PATH", system::valgrind)),
    setting("tools.perf", "", "where perf is", Call("PATH", system::perf)),
    setting("tools.hyperfine", "", "where hyperfine is", Call("PATH", system::hyperfine)),
    setting("tools.chromium", "", "where chromium is", Call("PATH", system::chromium)),
];

fn lock_digest(_: &super::source::Probe) -> super::Told {
    Ok(build::lock_digest())
}

fn locked(package: &str) -> super::Told {
    build::locked_version(package).ok_or_else(|| format!("no `{package}` in Cargo.lock"))
}
