//! Where each CPU sits, and which CPUs this process may use.
//!
//! Reads `/sys/devices/system/cpu`, `/sys/devices/system/node`, the affinity mask and the cpuset. A CPU whose place
//! cannot be read is kept with the reason: floating threads do not need places, and a guessed place would pin wrongly.

use std::{collections::BTreeMap, io, path::Path};

use super::{
    cpu_list::CpuList,
    environment::cgroup,
    machine::{Machine, Tree},
};

/// The CPUs of a machine.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Topology {
    /// CPUs that the kernel has running.
    pub online: CpuList,
    /// CPUs that exist; some may be offline.
    pub present: CpuList,
    /// CPUs that this process may run on: online, in its affinity mask and in its cpuset.
    pub allowed: CpuList,
    /// Place of each allowed CPU, or why it is unknown.
    pub places: BTreeMap<u32, Result<Place, String>>,
}

/// Where one CPU sits. Numbers are the kernel's: not contiguous, and unique only within what encloses them, except for
/// `core`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// Physical package; 0 where the kernel does not know (-1).
    pub socket: u32,
    /// NUMA node; 0 where the machine has none.
    pub node: u32,
    /// Die within the socket; 0 where the kernel does not know.
    pub die: u32,
    /// Core within the socket: the position in which a socket's cores are filled.
    pub core_id: u32,
    /// The core, named by the lowest CPU number among its hardware threads.
    pub core: u32,
    /// Speed class, 0 the fastest: P-cores 0 and E-cores 1 on a hybrid machine, else by falling `cpu_capacity`.
    pub class: u32,
}

/// Why the topology cannot be read.
#[derive(Debug, thiserror::Error)]
pub enum TopologyError {
    /// The kernel did not tell the affinity mask.
    #[error("cannot read the affinity mask of this process")]
    Affinity(#[source] io::Error),
    /// A file holds something else than a CPU list.
    #[error("cannot understand the CPU topology: {0}")]
    Garbled(String),
    /// No CPU is left.
    #[error("no CPU is online, in the affinity mask `{affinity}` and in the cpuset `{cpuset}`")]
    NoCpu {
        /// Affinity mask.
        affinity: CpuList,
        /// CPUs of the cgroup.
        cpuset: String,
    },
}

impl Topology {
    /// Reads the topology of this machine (root `/`), or of a recorded one whose affinity mask is the
    /// `Cpus_allowed_list` of its `/proc/self/status`.
    ///
    /// Must be called before the process pins itself: the mask of a pinned process is one CPU.
    ///
    /// # Errors
    /// [`TopologyError`] if the set of usable CPUs is unknown or empty. An unknown place is not an error here.
    pub fn read(root: &Path) -> Result<Self, TopologyError> {
        let machine = Machine::recorded(root);
        let tree = Tree::new(root);
        let affinity = if machine.is_live() { affinity().map_err(TopologyError::Affinity)? } else { recorded(&tree)? };
        Self::read_allowed(&tree, &affinity)
    }

    fn read_allowed(tree: &Tree, affinity: &CpuList) -> Result<Self, TopologyError> {
        // Some sandboxes show no CPUs in /sys; what the kernel schedules us on is online and present.
        let online = list(tree, "/sys/devices/system/cpu/online")?.unwrap_or_else(|| affinity.clone());
        let present = list(tree, "/sys/devices/system/cpu/present")?.unwrap_or_else(|| online.clone());
        let mut allowed = online.intersection(affinity);
        let cpuset = cgroup::cpuset(tree);
        if let Ok(cpuset) = &cpuset {
            let cpuset = cpuset.parse().map_err(garbled("the cpuset"))?;
            allowed = allowed.intersection(&cpuset);
        }
        if allowed.is_empty() {
            let cpuset = cpuset.unwrap_or_else(|reason| reason);
            return Err(TopologyError::NoCpu { affinity: affinity.clone(), cpuset });
        }
        let nodes = nodes(tree)?;
        let classes = classes(tree, &allowed)?;
        let places = allowed.iter().map(|cpu| (cpu, place(tree, cpu, &nodes, &classes))).collect();
        Ok(Self { online, present, allowed, places })
    }

    /// Returns how many CPUs this process may use: what `threads: all` means.
    pub fn n_allowed(&self) -> usize {
        self.allowed.len()
    }
}

/// Returns the affinity mask of the calling thread.
///
/// # Errors
/// The error of `sched_getaffinity`.
pub fn affinity() -> io::Result<CpuList> {
    /// Enough for 65,536 CPUs; the kernel refuses a mask shorter than its own.
    const WORDS: usize = 1024;
    let mut mask = [0u64; WORDS];
    // SAFETY: the kernel writes at most the given number of bytes into `mask`, which is that long and lives here; any
    // bit pattern is a valid `u64`, and `cpu_set_t` is such an array of words.
    let status = unsafe { libc::sched_getaffinity(0, size_of_val(&mask), mask.as_mut_ptr().cast()) };
    if status != 0 {
        return Err(io::Error::last_os_error());
    }
    let cpus = (0u32..).zip(mask).flat_map(|(word_idx, word)| {
        (0..64).filter(move |bit| word >> bit & 1 == 1).map(move |bit| word_idx * 64 + bit)
    });
    Ok(cpus.collect())
}

fn recorded(tree: &Tree) -> Result<CpuList, TopologyError> {
    let status = tree.text("/proc/self/status").map_err(TopologyError::Garbled)?;
    let allowed = status.lines().find_map(|line| line.strip_prefix("Cpus_allowed_list:"));
    let allowed = allowed.ok_or_else(|| TopologyError::Garbled("no Cpus_allowed_list in /proc/self/status".into()))?;
    allowed.trim().parse().map_err(garbled("/proc/self/status"))
}

/// Reads a list; a file that cannot be read is `None`, a garbled one an error.
fn list(tree: &Tree, path: &str) -> Result<Option<CpuList>, TopologyError> {
    tree.text(path).ok().map(|text| text.parse().map_err(garbled(path))).transpose()
}

fn garbled(path: &str) -> impl Fn(super::cpu_list::CpuListError) -> TopologyError {
    move |error| TopologyError::Garbled(format!("{path}: {error}"))
}

/// Returns the NUMA node of each CPU.
fn nodes(tree: &Tree) -> Result<BTreeMap<u32, u32>, TopologyError> {
    let mut nodes = BTreeMap::new();
    for (node, path) in tree.glob("/sys/devices/system/node/node*/cpulist") {
        let Ok(node) = node.parse() else { continue };
        let cpus = list(tree, &path)?.unwrap_or_default();
        nodes.extend(cpus.iter().map(|cpu| (cpu, node)));
    }
    Ok(nodes)
}

/// Returns the speed class of each CPU that is not in the fastest.
///
/// The lists of a hybrid machine win over capacities, which there may also rank single favoured cores.
fn classes(tree: &Tree, allowed: &CpuList) -> Result<BTreeMap<u32, u32>, TopologyError> {
    if list(tree, "/sys/devices/cpu_core/cpus")?.is_some() {
        let efficient = list(tree, "/sys/devices/cpu_atom/cpus")?.unwrap_or_default();
        return Ok(efficient.iter().map(|cpu| (cpu, 1)).collect());
    }
    let capacity = |cpu| tree.number(&format!("/sys/devices/system/cpu/cpu{cpu}/cpu_capacity")).ok();
    let capacities: BTreeMap<u32, i64> = allowed.iter().filter_map(|cpu| Some((cpu, capacity(cpu)?))).collect();
    let mut falling: Vec<i64> = capacities.values().copied().collect();
    falling.sort_unstable_by(|a, b| b.cmp(a));
    falling.dedup();
    let class = |capacity| (0u32..).zip(&falling).find(|&(_, &other)| other == capacity).map_or(0, |(class, _)| class);
    Ok(capacities.into_iter().map(|(cpu, capacity)| (cpu, class(capacity))).collect())
}

fn place(tree: &Tree, cpu: u32, nodes: &BTreeMap<u32, u32>, classes: &BTreeMap<u32, u32>) -> Result<Place, String> {
    let file = |name: &str| format!("/sys/devices/system/cpu/cpu{cpu}/topology/{name}");
    // Old kernels have no dies, and some firmware gives -1.
    let optional = |name| tree.number(&file(name)).ok().and_then(|id| u32::try_from(id).ok()).unwrap_or(0);
    let siblings: CpuList =
        tree.text(&file("thread_siblings_list"))?.parse().map_err(|error| format!("thread_siblings_list: {error}"))?;
    if !siblings.contains(cpu) {
        return Err(format!("CPU {cpu} is not among its own thread siblings `{siblings}`"));
    }
    Ok(Place {
        socket: u32::try_from(tree.number(&file("physical_package_id"))?).unwrap_or(0),
        node: nodes.get(&cpu).copied().unwrap_or(0),
        die: optional("die_id"),
        core_id: optional("core_id"),
        core: siblings.iter().next().unwrap_or(cpu),
        class: classes.get(&cpu).copied().unwrap_or(0),
    })
}
