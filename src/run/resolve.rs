//! Makes a request of a trial: every symbol of the plan as this machine resolves it.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use rare_workloads::{
    nodes::Nodes,
    protocol::{AllocatorRequest, FORMAT, Harness, Length, Preload, Reclamation, Request, Watch},
    structures,
};

use super::launch::{self, Surroundings};
use crate::{
    host::{
        pinning::PinError,
        preload::{self, PreloadError},
        topology::Topology,
    },
    plan::{ACCOUNTING_OPERATIONS, BlockKind, Cell, Mode, Plan, TrialId},
    spec::value::{Allocator, Parameter, StructureUse, Threads, Value},
    units::Bytes,
};

/// Most threads of a trial: the worker runs no more.
const THREADS_MAX: usize = 10_000;

/// Longest padding: Linux takes no string of an environment above 128 KiB, of which the name needs some.
const PADDING_MAX: Bytes = Bytes(120 << 10);

/// What a plan's symbols mean here. Read before anything is pinned.
#[derive(Clone, Debug)]
pub struct Host {
    /// The CPUs.
    pub topology: Topology,
    /// Every library that the plan preloads, by the plan's path. Inspected once, so that all its trials have the same
    /// content; the worker proves that it still had it.
    pub preloads: BTreeMap<String, Preload>,
}

impl Host {
    /// Inspects every library that a plan preloads.
    ///
    /// # Errors
    /// One [`ResolveError::Preload`] for each that cannot be.
    pub fn new(plan: &Plan, topology: Topology) -> Result<Self, Vec<ResolveError>> {
        let mut preloads = BTreeMap::new();
        let mut errors = Vec::new();
        let paths: BTreeSet<&String> = plan.all_cells().filter_map(preloaded).collect();
        for path in paths {
            match preload::inspect(path) {
                Ok(preload) => drop(preloads.insert(path.clone(), preload)),
                Err(error) => errors.push(error.into()),
            }
        }
        if errors.is_empty() { Ok(Self { topology, preloads }) } else { Err(errors) }
    }
}

fn preloaded(cell: Cell<'_>) -> Option<&String> {
    match cell.allocator() {
        Allocator::Preload(path) => Some(path),
        Allocator::Linked(_) => None,
    }
}

/// Why this machine cannot run a trial as planned. Nothing of the plan is run then.
#[derive(Debug, thiserror::Error)]
pub enum ResolveError {
    /// Pinning.
    #[error(transparent)]
    Pinning(#[from] PinError),
    /// Preload.
    #[error(transparent)]
    Preload(#[from] PreloadError),
    /// A value that this version cannot bring about.
    #[error("this version of rare does not support the {} `{value}`", parameter.name())]
    Unsupported {
        /// Which parameter.
        parameter: Parameter,
        /// Its value.
        value: Value,
    },
    /// Settings of the harness that do not go with the rest of a cell, or with the CPUs of this machine.
    #[error("cannot measure as planned: {0}")]
    Harness(&'static str),
    /// A structure that this version does not have, or not in this way.
    #[error("this version of rare {0}")]
    Structure(String),
    /// Nice level.
    #[error("cannot give a worker the priority {nice}: this user may not")]
    Priority {
        /// The level.
        nice: i8,
    },
    /// Address space randomisation.
    #[error("cannot switch `aslr` {}: the kernel or a sandbox forbids it", if *.on { "on" } else { "off" })]
    Aslr {
        /// As planned.
        on: bool,
    },
}

/// Resolves one trial of a plan.
///
/// # Errors
/// [`ResolveError`] when this machine cannot honour it.
///
/// # Panics
/// If `host` was made for another plan, which preloads other libraries.
pub fn resolve(plan: &Plan, trial: TrialId, host: &Host) -> Result<Request, ResolveError> {
    let cell = plan.cell_of(trial).expect("the trial is of this plan");
    permitted(cell.priority(), surroundings(cell).aslr)?;
    Ok(fill(template(cell, host)?, plan, trial))
}

/// Refuses what would silently be run as something else, or not at all; returns how the harness is to measure.
fn supported(cell: Cell<'_>, n_threads: usize) -> Result<Harness, ResolveError> {
    let parameter = match cell.harness() {
        Err(parameter) => parameter,
        Ok(_) if !cell.nodes().are_known() => Parameter::NodePadding,
        Ok(_) if n_threads > THREADS_MAX => Parameter::Threads,
        Ok(_) if cell.environment_padding() > PADDING_MAX => Parameter::EnvironmentPadding,
        Ok(harness) => return Ok(harness),
    };
    Err(ResolveError::Unsupported { parameter, value: cell.value(parameter).clone() })
}

/// Adds to the template of a cell what is the trial's own.
pub(super) fn fill(mut template: Request, plan: &Plan, trial: TrialId) -> Request {
    let mode = plan.probe_of(trial).map(|probe| probe.mode);
    template.length = match (trial.kind, mode.and_then(Mode::operations)) {
        (BlockKind::Account, _) => Length::Accounting { operations: ACCOUNTING_OPERATIONS },
        (_, Some(operations)) if mode == Some(Mode::Account) => Length::Accounting { operations },
        (_, Some(operations)) => Length::Operations { operations },
        (_, None) => template.length,
    };
    template.watch = mode.and_then(watch);
    template.seed = plan.seed(trial);
    template
}

/// Returns what watches the trials of a probe from within the worker. A tool that needs to be told where its fifos are
/// adds that when it is started.
fn watch(mode: Mode) -> Option<Watch> {
    match mode {
        Mode::Timed | Mode::Account | Mode::Sample => None,
        Mode::Layout => Some(Watch::Layout { allocations: LISTED_ALLOCATIONS }),
        Mode::Counters => Some(Watch::Counters),
        Mode::Memcheck | Mode::Simulate => Some(Watch::Valgrind),
    }
}

/// Allocations that are listed of each thread and phase: enough to see a pattern of two kinds of nodes, and a picture
/// that fits a page.
const LISTED_ALLOCATIONS: u32 = 256;

/// Resolves what all trials of a cell share. The seed is that of no trial, and so is the length where trials end after
/// some operations.
pub(super) fn template(cell: Cell<'_>, host: &Host) -> Result<Request, ResolveError> {
    let n_threads = match cell.threads() {
        Threads::Count(threads) => threads as usize,
        Threads::All => host.topology.n_allowed(),
    };
    let harness = supported(cell, n_threads)?;
    let cpus = host.topology.pin(cell.pinning(), n_threads)?;
    let (name, preload) = match cell.allocator() {
        Allocator::Linked(name) => (*name, None),
        Allocator::Preload(path) => {
            ("system", Some(host.preloads.get(path).expect("Host::new inspected every preload of the plan").clone()))
        }
    };
    let structure = cell.structure();
    let request = Request {
        format: FORMAT,
        structure: structure.name.clone(),
        structure_parameters: structure.parameters.clone(),
        reclamation: cell.reclamation(),
        allocator: AllocatorRequest { name: name.to_owned(), preload },
        cpus,
        key_range: cell.key_range(),
        mix: cell.mix(),
        range_keys: cell.range_keys(),
        distribution: cell.distribution(),
        prefill_keys: cell.prefill().keys(cell.key_range()),
        length: Length::Nanos(cell.trial_length().0),
        seed: 0,
        nice: i32::from(cell.priority()),
        nodes: cell.nodes(),
        harness,
        watch: None,
    };
    match request.harness_refusal() {
        Some(reason) => Err(ResolveError::Harness(reason)),
        None => Ok(request),
    }
}

/// Returns what surrounds the workers of a cell.
pub(super) fn surroundings(cell: Cell<'_>) -> Surroundings {
    Surroundings {
        aslr: cell.aslr() == "on",
        huge_pages: cell.huge_pages() == "system",
        environment_padding: cell.environment_padding().0,
    }
}

/// Checks that this version has every structure of a plan as its cells use it, each combination of what they ask of it
/// once. The worker would refuse them too, but only trial by trial.
pub(super) fn check_structures(plan: &Plan) -> Vec<ResolveError> {
    let asked = |cell: Cell<'_>| Asked {
        reclamation: cell.reclamation(),
        nodes: cell.nodes(),
        ranges: cell.range_keys().is_some(),
    };
    let used: BTreeSet<_> = plan.all_cells().map(|cell| (cell.structure(), asked(cell))).collect();
    used.into_iter().filter_map(|(used, asked)| lacking(used, asked)).map(ResolveError::Structure).collect()
}

/// What cells ask of a structure besides its own parameters.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Asked {
    reclamation: Reclamation,
    nodes: Nodes,
    ranges: bool,
}

/// Says what this version lacks for a structure; `None` when it has it all.
fn lacking(used: &StructureUse, asked: Asked) -> Option<String> {
    let name = &used.name;
    let Some(structure) = structures::find(name) else {
        return Some(format!("has no structure `{name}`"));
    };
    if structure.driver(asked.reclamation).is_none() {
        return Some(format!("does not run `{name}` under the reclamation `{}`", asked.reclamation.name()));
    }
    if !structure.info.memory.honours(asked.nodes) {
        return Some(format!("can neither pad nor pool the nodes of `{name}`"));
    }
    if asked.ranges && !structure.has_range_query() {
        return Some(format!("has no range query of `{name}`"));
    }
    let known = |parameter: &str| structure.info.parameters.iter().find(|info| info.name == parameter);
    let unfit = used
        .parameters
        .iter()
        .find(|(parameter, value)| known(parameter).is_none_or(|info| !(info.range.0..=info.range.1).contains(*value)));
    let missing = structure.info.parameters.iter().find(|info| !used.parameters.contains_key(info.name));
    match (unfit, missing) {
        (Some((parameter, value)), _) => Some(format!("cannot run `{name}` with `{parameter}: {value}`")),
        (None, Some(info)) => Some(format!("cannot run `{name}` without its parameter `{}`", info.name)),
        (None, None) => None,
    }
}

/// Checks every priority and layout of a plan, each pair once.
pub(super) fn check_permissions(plan: &Plan) -> Vec<ResolveError> {
    let asked: BTreeSet<(i8, bool)> = plan.all_cells().map(|cell| (cell.priority(), surroundings(cell).aslr)).collect();
    asked.into_iter().filter_map(|(nice, aslr)| permitted(nice, aslr).err()).collect()
}

/// Checks what the system lets this user do to a worker.
fn permitted(nice: i8, aslr: bool) -> Result<(), ResolveError> {
    launch::permits(i32::from(nice), aslr).map_err(|refused| match refused {
        launch::Refused::Priority => ResolveError::Priority { nice },
        launch::Refused::Aslr => ResolveError::Aslr { on: aslr },
    })
}

/// Time for a worker to begin and end, on a machine where all else goes wrong: a cold disk, a busy CPU.
const SLACK: Duration = Duration::from_secs(20);

/// Time for a key of the prefill or an operation of an accounting trial. Trees need a microsecond, long lists a
/// thousand times that for a structure small enough to be filled at all.
const PER_OPERATION: Duration = Duration::from_micros(100);

/// Time for one key of a range query, likewise: it lies next to the one before, or is a miss of every cache.
const PER_RANGE_KEY: Duration = Duration::from_micros(1);

/// Returns after which time a worker is given up: the planned length, an allowance for the prefill, and [`SLACK`].
pub(super) fn time_out(request: &Request) -> Duration {
    let threads = u32::try_from(request.cpus.len()).unwrap_or(u32::MAX);
    let window = match request.length {
        // A planted fault lets the threads run on for a fifth. The last query of each thread may have to wait for those of
        // the others.
        Length::Nanos(nanos) => Duration::from_nanos(nanos.saturating_add(nanos / 5))
            .saturating_add(ranges(1, request).saturating_mul(threads)),
        Length::Accounting { operations } | Length::Operations { operations } => {
            per_operation(operations).saturating_add(ranges(operations, request)).saturating_mul(threads)
        }
    };
    SLACK.saturating_add(window).saturating_add(per_operation(request.prefill_keys))
}

fn per_operation(operations: u64) -> Duration {
    PER_OPERATION.saturating_mul(u32::try_from(operations).unwrap_or(u32::MAX))
}

/// Returns the time that `n` range queries may take, one after the other.
fn ranges(n: u64, request: &Request) -> Duration {
    let keys = request.range_keys.unwrap_or(0).min(request.key_range);
    PER_RANGE_KEY.saturating_mul(u32::try_from(n.saturating_mul(keys)).unwrap_or(u32::MAX))
}
