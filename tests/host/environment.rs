//! The environment record of this machine and of recorded ones.

use std::{
    collections::BTreeSet,
    fs,
    path::Path,
    time::{Duration, Instant},
};

use rare::{
    host::{Machine, environment},
    record::{Environment, Reading, Snapshot, environment::Stability},
};

use crate::tree::Tree;

fn here() -> Snapshot {
    let worker = std::env::current_exe().unwrap();
    environment::snapshot(&Machine { worker: Some(&worker), reports: Some(Path::new("reports")), ..Machine::here() })
}

fn recorded(name: &str) -> Snapshot {
    environment::snapshot(&Machine::recorded(Tree::recorded(name).root()))
}

#[track_caller]
fn check(snapshot: &Snapshot, key: &str, expected: &str) {
    let entry = snapshot.entries.iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("no {key}"));
    assert_eq!(entry.reading, Reading::Value(expected.into()), "{key}");
}

#[track_caller]
fn check_unreadable(snapshot: &Snapshot, key: &str, expected: &str) {
    let entry = snapshot.entries.iter().find(|entry| entry.key == key).unwrap_or_else(|| panic!("no {key}"));
    match &entry.reading {
        Reading::Unreadable(reason) => assert!(reason.contains(expected), "{key}: {reason}"),
        Reading::Value(value) => panic!("{key} was read: {value}"),
    }
}

#[test]
fn the_table_is_well_formed() {
    let groups: BTreeSet<&str> =
        "cpu cache numa memory firmware virtualisation cgroup clock frequency smt idle prefetch \
         thermal power os kernel thp sched perf irq swap load storage process build libraries tools"
            .split_whitespace()
            .collect();
    let mut keys = BTreeSet::new();
    for row in environment::table() {
        assert!(keys.insert(row.key), "{} stands twice", row.key);
        assert!(groups.contains(row.group()), "{} is in no known group", row.key);
        assert!(!row.meaning.is_empty() && !row.source().is_empty(), "{}", row.key);
        assert!(!row.meaning.ends_with('.'), "{}: meanings are no sentences", row.key);
        let by_root = row.privilege == environment::Privilege::Root;
        assert!(!(by_root && row.stability == Stability::Fixed), "{}: another user is no other machine", row.key);
    }
    let used: BTreeSet<&str> = environment::table().map(environment::Row::group).collect();
    assert_eq!(used, groups, "every group has a row");
}

#[test]
fn every_parameter_of_this_machine_is_a_value_or_a_reason() {
    let snapshot = here();
    let keys: Vec<&str> = snapshot.entries.iter().map(|entry| entry.key.as_str()).collect();
    let expected: Vec<&str> = environment::table().map(|row| row.key).collect();
    assert_eq!(keys, expected);
    for entry in &snapshot.entries {
        let (Reading::Value(text) | Reading::Unreadable(text)) = &entry.reading;
        assert!(!text.trim().is_empty(), "{} is blank", entry.key);
        assert!(!text.contains('\n'), "{} has several lines: {text}", entry.key);
    }
    let read = snapshot.entries.iter().filter(|entry| matches!(entry.reading, Reading::Value(_))).count();
    assert!(read * 2 > keys.len(), "only {read} of {} were readable", keys.len());
    for key in [
        "cpu.architecture",
        "cpu.online",
        "memory.total",
        "kernel.release",
        "kernel.tick_rate",
        "clock.read_cost",
        "process.arguments",
        "process.variable_digest",
        "process.executable_sha256",
        "build.rustc",
        "build.worker_sha256",
        "libraries.worker",
        "storage.filesystem",
        "load.average",
    ] {
        assert!(snapshot.value(key).is_some(), "{key} was not readable");
    }
    let tick_rate: u32 = snapshot.value("kernel.tick_rate").unwrap().parse().unwrap();
    assert!((24..=10_000).contains(&tick_rate), "{tick_rate}");
    let libraries = snapshot.value("libraries.worker").unwrap();
    assert!(libraries.contains("libc.so.6 sha256 ") && !libraries.contains("not found"), "{libraries}");
}

#[test]
fn a_second_snapshot_differs_in_no_fixed_parameter() {
    let (before, after) = (here(), here());
    assert_eq!(Environment::stale(&before, &after), []);
    assert_eq!(before.identity(), after.identity());
    assert!(before.identity().iter().any(|(key, _)| *key == "build.worker_sha256"));
    let differences = Environment::differences(&before, &after);
    let changed: Vec<&str> = differences.iter().map(|difference| difference.key.as_str()).collect();
    assert!(changed.contains(&"os.uptime") || changed.contains(&"load.context_switches"), "{changed:?}");
}

#[test]
fn another_worker_makes_trials_stale() {
    let folder = tempfile::tempdir().unwrap();
    let worker = folder.path().join("worker");
    fs::copy("/proc/self/exe", &worker).unwrap();
    let machine = Machine { worker: Some(&worker), ..Machine::here() };
    let before = environment::snapshot(&machine);
    let mut bytes = fs::read(&worker).unwrap();
    bytes.push(0);
    fs::write(&worker, bytes).unwrap();
    let stale = Environment::stale(&before, &environment::snapshot(&machine));
    let keys: Vec<&str> = stale.iter().map(|difference| difference.key.as_str()).collect();
    assert_eq!(keys, ["build.worker_sha256"]);
}

#[test]
fn a_snapshot_is_fast() {
    /// Some 4 ms when optimised and alone; tests are neither.
    const LIMIT: Duration = Duration::from_millis(150);
    here();
    let time = || {
        let start = Instant::now();
        here();
        start.elapsed()
    };
    let least = (0..5).map(|_| time()).min().unwrap();
    assert!(least < LIMIT, "{least:?}");
}

#[test]
fn reads_a_recorded_server() {
    let snapshot = recorded("xeon");
    check(&snapshot, "cpu.model", "Intel(R) Xeon(R) Gold 6430");
    check(&snapshot, "cpu.model_number", "143");
    check(&snapshot, "cpu.microcode", "0x2b000571");
    check(&snapshot, "cpu.sockets", "2");
    check(&snapshot, "cpu.cores", "4");
    check(&snapshot, "cpu.socket_map", "0: 0,2; 1: 1,3");
    check(&snapshot, "cpu.allowed", "0-3");
    check(&snapshot, "cache.l1d", "48 KiB, 64 B lines, 12 ways");
    check(&snapshot, "cache.sharing", "L1: 0 | 1 | 2 | 3; L3: 0,2 | 1,3");
    check(&snapshot, "numa.cpus", "0: 0,2; 1: 1,3");
    check(&snapshot, "numa.distances", "0: 10 21; 1: 21 10");
    check(&snapshot, "numa.memory", "0: 131072; 1: 131072");
    check(&snapshot, "frequency.governor", "performance on 0-1; powersave on 2-3");
    check(&snapshot, "frequency.driver", "intel_pstate");
    check(&snapshot, "frequency.hardware_maximum", "3400000");
    check(&snapshot, "frequency.current", "800000 to 2100000, median 800000");
    check(&snapshot, "frequency.reported", "2100 on 0; 800 on 1-3");
    check(&snapshot, "frequency.no_turbo", "1");
    check(&snapshot, "idle.states", "POLL 0 us, C6 290 us (disabled on 2)");
    check(&snapshot, "thermal.core_throttles", "6");
    check(&snapshot, "thermal.temperatures", "coretemp Package id 0 47.2");
    check(&snapshot, "power.caps", "0: 270 W");
    check(&snapshot, "firmware.board_name", "X13DEI");
    check(&snapshot, "virtualisation.flag", "no");
    check(&snapshot, "clock.tsc_flags", "tsc constant_tsc nonstop_tsc rdtscp");
    check(&snapshot, "kernel.release", "6.1.0-28-amd64");
    check(&snapshot, "kernel.preemption", "PREEMPT_DYNAMIC, booted with preempt=none");
    check(&snapshot, "kernel.mitigations", "meltdown: Not affected; spectre_v2: Mitigation: Enhanced IBRS");
    check(&snapshot, "kernel.mitigations_option", "off");
    check(&snapshot, "kernel.isolated_cpus", "none");
    let config = snapshot.value("kernel.config").unwrap();
    assert!(config.starts_with("CONFIG_HZ=250 ") && config.ends_with("CONFIG_KASAN=n"), "{config}");
    check(&snapshot, "thp.enabled", "madvise");
    check(&snapshot, "thp.pools", "2048kB: 16 reserved, 12 free");
    check(&snapshot, "irq.affinity", "0-3 for 2 lines; 1 for 1 line");
    check(&snapshot, "memory.total", "256835");
    check(&snapshot, "swap.total", "0");
    check(&snapshot, "cgroup.version", "2");
    check(&snapshot, "cgroup.cpu_max", "150000 100000 at /user.slice");
    check(&snapshot, "cgroup.memory_max", "8589934592 at /user.slice");
    check(&snapshot, "process.limit_stack", "8388608, hard unlimited");
    check_unreadable(
        &snapshot,
        "frequency.minimum",
        "no such file: /sys/devices/system/cpu/cpu*/cpufreq/scaling_min_freq",
    );
    check_unreadable(&snapshot, "memory.page_size", "a recorded tree answers no system call");
    check_unreadable(&snapshot, "build.worker_sha256", "no worker was named");
    check_unreadable(&snapshot, "cpu.types", "not a hybrid processor");
}

#[test]
fn reads_model_specific_registers() {
    let tree = Tree::recorded("xeon");
    // In a plain file the two registers overlap: the byte at 0x1a4 is both bits 32-39 of 0x1a0 and bits 0-7 of 0x1a4.
    let mut registers = vec![0; 0x1b0];
    registers[0x1a4] = 0b0100_0101;
    for cpu in 0..4 {
        let path = tree.root().join(format!("dev/cpu/{cpu}/msr"));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, &registers).unwrap();
    }
    let snapshot = environment::snapshot(&Machine::recorded(tree.root()));
    check(&snapshot, "frequency.turbo_register", "off");
    check(&snapshot, "prefetch.hardware", "off: L2 streamer, L1 streamer");
    tree.write("proc/cpuinfo", "processor\t: 0\nvendor_id\t: AuthenticAMD\n");
    let snapshot = environment::snapshot(&Machine::recorded(tree.root()));
    check_unreadable(&snapshot, "prefetch.hardware", "not an Intel CPU (AuthenticAMD)");
}

#[test]
fn reads_the_control_groups_of_version_1() {
    let snapshot = recorded("cgroup-v1");
    check(&snapshot, "cgroup.version", "1 with 2 beside it");
    check(&snapshot, "cgroup.cpu_max", "50000 100000 at /");
    check(&snapshot, "cgroup.cpus", "1");
    check(&snapshot, "cgroup.memory_max", "max");
    check_unreadable(&snapshot, "cgroup.pids_max", "no mount of the pids controller");
}

#[test]
fn an_empty_tree_gives_reasons_only() {
    let folder = tempfile::tempdir().unwrap();
    let snapshot = environment::snapshot(&Machine::recorded(folder.path()));
    for entry in &snapshot.entries {
        let of_the_build = ["build.", "libraries."].iter().any(|group| entry.key.starts_with(group));
        let by_absence = ["firmware.boot_mode", "irq.balancing"].contains(&entry.key.as_str());
        if !of_the_build && !by_absence {
            assert!(matches!(entry.reading, Reading::Unreadable(_)), "{} was read: {:?}", entry.key, entry.reading);
        }
    }
}
