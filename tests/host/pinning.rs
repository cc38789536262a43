//! Which CPU each thread gets, on recorded topologies.

use rare::{
    host::{CpuList, PinError, Topology},
    spec::value::Pinning,
};

use crate::tree::Tree;

/// Names of the recorded topologies.
const TREES: [&str; 6] = ["one-socket", "two-sockets-smt", "hybrid", "offline", "container", "sparse"];

fn topology(name: &str) -> Topology {
    Topology::read(Tree::recorded(name).root()).unwrap()
}

fn order(topology: &Topology, pinning: &Pinning) -> Vec<u32> {
    topology.pin(pinning, topology.n_allowed()).unwrap().into_iter().map(|cpu| cpu.expect("a pinned thread")).collect()
}

#[track_caller]
fn check(name: &str, compact: &[u32], scatter: &[u32]) {
    let topology = topology(name);
    assert_eq!(order(&topology, &Pinning::Compact), compact, "compact on {name}");
    assert_eq!(order(&topology, &Pinning::Scatter), scatter, "scatter on {name}");
}

#[test]
fn one_socket_without_smt() {
    check("one-socket", &[0, 1, 2, 3], &[0, 1, 2, 3]);
}

#[test]
fn two_sockets_with_smt_and_alternating_numbers() {
    check(
        "two-sockets-smt",
        &[0, 2, 4, 6, 8, 10, 12, 14, 1, 3, 5, 7, 9, 11, 13, 15],
        &[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15],
    );
}

#[test]
fn performance_cores_come_first_and_siblings_last() {
    check("hybrid", &[0, 2, 4, 5, 6, 7, 1, 3], &[0, 2, 4, 5, 6, 7, 1, 3]);
}

#[test]
fn offline_cpus_are_left_out() {
    // Socket 0 has CPUs 0 and 4 on one core and 1 on another; socket 1 has 6 on one core, and 3 and 7 on another.
    check("offline", &[0, 1, 4, 6, 3, 7], &[0, 6, 1, 3, 4, 7]);
}

#[test]
fn a_container_gets_what_it_owns() {
    let topology = topology("container");
    assert_eq!(topology.n_allowed(), 4);
    check("container", &[4, 5, 6, 7], &[4, 5, 6, 7]);
    let error = topology.pin(&Pinning::Cpus(vec![4, 0]), 2).unwrap_err();
    assert_eq!(error, PinError::NotAllowed { cpu: 0, allowed: "4-7".parse().unwrap() });
}

#[test]
fn numbers_need_not_be_contiguous() {
    check("sparse", &[0, 8, 16, 24, 80, 88, 96, 104], &[0, 80, 8, 88, 16, 96, 24, 104]);
}

/// Two sockets of 64 cores with SMT, four nodes a socket.
fn large() -> Tree {
    let mut lines = vec![
        "proc/self/status = Cpus_allowed_list: 0-255".to_owned(),
        "sys/devices/system/cpu/online = 0-255".to_owned(),
        "sys/devices/system/cpu/present = 0-255".to_owned(),
    ];
    for cpu in 0..256 {
        let core = cpu % 128;
        lines.push(format!("cpu {cpu}: socket {} die 0 core {} threads {core},{}", core / 64, core % 64, core + 128));
    }
    for node in 0..8 {
        let (first, last) = (node * 16, node * 16 + 15);
        lines.push(format!(
            "sys/devices/system/node/node{node}/cpulist = {first}-{last},{}-{}",
            first + 128,
            last + 128
        ));
    }
    Tree::of(&lines.join("\n"))
}

#[test]
fn two_hundred_fifty_six_cpus() {
    let tree = large();
    let topology = Topology::read(tree.root()).unwrap();
    let compact = order(&topology, &Pinning::Compact);
    let expected: Vec<u32> = (0..64).chain(128..192).chain(64..128).chain(192..256).collect();
    assert_eq!(compact, expected);

    let scatter = order(&topology, &Pinning::Scatter);
    assert_eq!(scatter[..9], [0, 64, 16, 80, 32, 96, 48, 112, 1], "eight threads sit on eight nodes");
    let cores: CpuList = scatter[..128].iter().copied().collect();
    assert_eq!(cores.to_string(), "0-127", "128 threads sit on 128 cores");
    assert_eq!(scatter[128..137], [128, 192, 144, 208, 160, 224, 176, 240, 129], "siblings in the same order");
}

#[test]
fn every_order_holds_each_allowed_cpu_once_and_is_stable_in_its_prefix() {
    for name in TREES {
        let topology = topology(name);
        for pinning in [Pinning::Compact, Pinning::Scatter] {
            let whole = order(&topology, &pinning);
            assert_eq!(whole.iter().copied().collect::<CpuList>(), topology.allowed, "{name}");
            assert_eq!(whole.len(), topology.n_allowed(), "{name}");
            for n_threads in 0..whole.len() {
                let prefix: Vec<u32> = topology.pin(&pinning, n_threads).unwrap().into_iter().flatten().collect();
                assert_eq!(prefix, whole[..n_threads], "{name}, {n_threads} threads");
            }
        }
    }
}

#[test]
fn too_many_threads_are_refused_and_never_share() {
    for name in TREES {
        let topology = topology(name);
        let n_threads = topology.n_allowed() + 1;
        for pinning in [Pinning::Compact, Pinning::Scatter] {
            let error = topology.pin(&pinning, n_threads).unwrap_err();
            assert!(matches!(error, PinError::TooFew { threads, .. } if threads == n_threads), "{error}");
            assert!(error.to_string().contains(&format!("cannot pin {n_threads} threads")), "{error}");
        }
        assert_eq!(topology.pin(&Pinning::None, n_threads).unwrap(), vec![None; n_threads]);
    }
}

#[test]
fn lists_are_taken_exactly_or_refused() {
    let topology = topology("offline");
    let pin = |cpus: &[u32], n_threads| topology.pin(&Pinning::Cpus(cpus.to_vec()), n_threads);
    assert_eq!(pin(&[7, 0, 3], 3).unwrap(), [Some(7), Some(0), Some(3)]);
    assert_eq!(pin(&[7, 0, 3], 2).unwrap(), [Some(7), Some(0)]);
    assert!(matches!(pin(&[7, 0], 3).unwrap_err(), PinError::ShortList { threads: 3, listed: 2 }));
    assert!(matches!(pin(&[7, 8], 1).unwrap_err(), PinError::Absent { cpu: 8, .. }));
    assert!(matches!(pin(&[7, 2], 1).unwrap_err(), PinError::Offline { cpu: 2, .. }));
    assert!(matches!(pin(&[7, 7], 1).unwrap_err(), PinError::Repeated { cpu: 7 }));
}

#[test]
fn an_unknown_place_stops_only_those_who_need_it() {
    let tree = Tree::of("proc/self/status = Cpus_allowed_list: 0-1\nsys/devices/system/cpu/online = 0-1");
    let topology = Topology::read(tree.root()).unwrap();
    assert_eq!(topology.n_allowed(), 2);
    assert_eq!(topology.pin(&Pinning::None, 3).unwrap(), [None; 3]);
    assert_eq!(topology.pin(&Pinning::Cpus(vec![1]), 1).unwrap(), [Some(1)]);
    let error = topology.pin(&Pinning::Compact, 1).unwrap_err();
    assert!(error.to_string().contains("no such file: /sys/devices/system/cpu/cpu0/topology"), "{error}");
}

#[test]
fn garbled_or_empty_sets_are_errors() {
    for text in [
        "proc/self/status = Cpus_allowed_list: 0-1\nsys/devices/system/cpu/online = 0-1,x",
        "proc/self/status = Cpus_allowed_list: 4-5\nsys/devices/system/cpu/online = 0-1",
        "proc/self/status = nothing\nsys/devices/system/cpu/online = 0-1",
        "sys/devices/system/cpu/online = 0-1",
    ] {
        assert!(Topology::read(Tree::of(text).root()).is_err(), "{text}");
    }
}

#[test]
fn reads_this_machine() {
    let topology = Topology::read(std::path::Path::new("/")).unwrap();
    let parallelism = std::thread::available_parallelism().unwrap().get();
    // The standard library also counts quotas, so it may see fewer.
    assert!(topology.n_allowed() >= parallelism, "{topology:?}");
    for pinning in [Pinning::Compact, Pinning::Scatter] {
        assert_eq!(order(&topology, &pinning).len(), topology.n_allowed());
    }
}

#[test]
fn the_affinity_mask_of_this_process_is_kept() {
    // The mask belongs to the thread, and ends with it.
    let pinned = std::thread::spawn(|| {
        let last = Topology::read(std::path::Path::new("/")).unwrap().allowed.iter().last().unwrap();
        let mut mask = rustix::thread::CpuSet::new();
        mask.set(last as usize);
        rustix::thread::sched_setaffinity(None, &mask).unwrap();
        (last, Topology::read(std::path::Path::new("/")).unwrap())
    });
    let (last, topology) = pinned.join().unwrap();
    assert_eq!(topology.allowed, CpuList::from_iter([last]));
    assert_eq!(topology.pin(&Pinning::Compact, 1).unwrap(), [Some(last)]);
    assert!(matches!(topology.pin(&Pinning::Scatter, 2).unwrap_err(), PinError::TooFew { threads: 2, allowed: 1, .. }));
}
