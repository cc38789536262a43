//! What the tests of the store and of runs share.

#![allow(dead_code, reason = "each test file uses its own part")]

#[path = "../skip/mod.rs"]
mod skip;

pub use skip::skip;

use std::{
    collections::BTreeMap,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use rare::{
    host::Topology,
    plan::{Block, BlockKind, Plan, TrialId},
    record::{FailureClass, Interference, Outcome, Trial},
    run::{
        Host, Identity, Interrupt, Job, Observer, RunError, Summary, Worker,
        choose::{self, Begun},
        execute,
    },
    spec::{
        model::Order,
        value::{Allocator, Parameter, Pinning, Prefill, RangeQuery, StructureUse, Threads, Value},
    },
    store::{Header, PlanFolder, Store},
    units::{Bytes, Nanos},
};
use rare_workloads::{
    nodes::Nodes,
    protocol::{AllocatorRequest, Distribution, FORMAT, Length, Mix, Reclamation, Request},
};
use tempfile::TempDir;

/// A request for a trial of no interest.
pub fn request() -> Request {
    Request {
        format: FORMAT,
        structure: "noop".to_owned(),
        structure_parameters: BTreeMap::new(),
        reclamation: Reclamation::Epoch,
        allocator: AllocatorRequest { name: "system".to_owned(), preload: None },
        cpus: vec![None],
        key_range: 100,
        mix: Mix { insert: 5_000, remove: 5_000, contains: 0, range: 0 },
        range_keys: None,
        distribution: Distribution::Uniform,
        prefill_keys: 50,
        length: Length::Nanos(1_000_000),
        seed: u64::MAX,
        nice: 0,
        nodes: Nodes::PLAIN,
        harness: rare_workloads::protocol::Harness::default(),
        watch: None,
    }
}

/// A record of trial `measure-<cell>-0`.
pub fn record(cell: u32) -> Trial {
    Trial {
        trial: TrialId { kind: BlockKind::Measure, cell, trial_idx: 0 },
        position: cell,
        attempt: 0,
        started: "2026-01-02T03:04:05.678Z".to_owned(),
        wall: Nanos(123_456_789),
        request: request(),
        outcome: Outcome::Failed {
            class: FailureClass::Signal,
            detail: "killed by SIGSEGV".to_owned(),
            stderr: "a \"quoted\"\nline, and ü".to_owned(),
        },
        interference: Interference { steal_ns: Some(7), ..Interference::default() },
        watched: None,
    }
}

/// A header of a journal.
pub fn header() -> Header {
    Header {
        format: 1,
        plan: "ab".repeat(32),
        run: "20260102T030405Z-host-example".to_owned(),
        worker_sha256: "cd".repeat(32),
        machine: "a machine".to_owned(),
    }
}

/// A mounted file system, unmounted on drop.
pub struct Mount<'p>(&'p Path);

impl<'p> Mount<'p> {
    /// Mounts a tmpfs; `None`, said in one line, where that is not permitted.
    pub fn tmpfs(path: &'p Path, options: &str) -> Option<Self> {
        let mounted = Command::new("mount").args(["-t", "tmpfs", "-o", options, "tmpfs"]).arg(path).output();
        if mounted.is_ok_and(|output| output.status.success()) {
            return Some(Self(path));
        }
        skip("mounting a tmpfs is not permitted here");
        None
    }

    /// Makes it read-only.
    pub fn read_only(&self) {
        let status = Command::new("mount").args(["-o", "remount,ro"]).arg(self.0).status().unwrap();
        assert!(status.success());
    }
}

impl Drop for Mount<'_> {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(self.0).status();
    }
}

/// A plan of small cells, one for each structure and key range, in the listed order, with `n_trials` trials of 1 ms each.
pub fn plan(cells: &[(&str, u64)], n_trials: u32) -> Plan {
    let mut values: [Vec<Value>; Parameter::COUNT] = Default::default();
    let mut index = |parameter: Parameter, value: Value| {
        let column = &mut values[parameter as usize];
        let known = column.iter().position(|known| *known == value);
        known.unwrap_or_else(|| {
            column.push(value);
            column.len() - 1
        }) as u32
    };
    let cells: Vec<[u32; Parameter::COUNT]> = cells
        .iter()
        .map(|&(structure, key_range)| {
            Parameter::ALL.map(|parameter| index(parameter, value(parameter, structure, key_range)))
        })
        .collect();
    let order: Vec<u32> = (0..cells.len() as u32).collect();
    let block = |trial_idx| Block { kind: BlockKind::Measure, trial_idx, order: order.clone() };
    Plan {
        values,
        cells,
        blocks: (0..n_trials).map(block).collect(),
        order: Order::Listed,
        seed: 1,
        checks: Vec::new(),
        instruments: Vec::new(),
        probes: Vec::new(),
    }
}

fn value(parameter: Parameter, structure: &str, key_range: u64) -> Value {
    match parameter {
        Parameter::Structure => Value::Structure(StructureUse {
            name: structure.to_owned(),
            label: structure.to_owned(),
            parameters: BTreeMap::new(),
        }),
        Parameter::Allocator => Value::Allocator(Allocator::Linked("system")),
        Parameter::Reclamation => Value::Reclamation(Reclamation::Epoch),
        Parameter::Pinning => Value::Pinning(Pinning::None),
        Parameter::Threads => Value::Threads(Threads::Count(1)),
        Parameter::KeyRange => Value::Count(key_range),
        Parameter::Mix => Value::Mix(request().mix),
        Parameter::Distribution => Value::Distribution(Distribution::Uniform),
        Parameter::Prefill => Value::Prefill(Prefill::Keys(0)),
        Parameter::RangeQuery => Value::RangeQuery(RangeQuery::None),
        Parameter::ObjectPool => Value::Word("none"),
        Parameter::TrialLength => Value::Duration(Nanos(1_000_000)),
        Parameter::HugePages => Value::Word("system"),
        Parameter::Aslr => Value::Word("on"),
        Parameter::EnvironmentPadding => Value::Bytes(Bytes(0)),
        Parameter::Priority => Value::Nice(0),
        Parameter::NodePadding => Value::Count(0),
        Parameter::TimeCheck => Value::Word("flag"),
        Parameter::HarnessPadding => Value::Count(128),
        Parameter::Generator => Value::Word("xoshiro256++"),
        Parameter::HarnessFault => Value::Word("none"),
    }
}

/// This machine.
pub fn host(plan: &Plan) -> Host {
    Host::new(plan, Topology::read(Path::new("/")).unwrap()).unwrap()
}

/// The worker that belongs to these tests.
pub fn worker() -> Worker {
    Worker::at(Path::new(env!("CARGO_BIN_EXE_rare-worker"))).unwrap()
}

/// Makes this test program a worker: the process runs the test `name`, with descriptor 3 and standard input as a worker
/// has them, and with `RARE_STUB` set to `mark`.
pub fn stub(folder: &Path, name: &str, mark: &str) -> Worker {
    let program = std::env::current_exe().unwrap();
    let path = folder.join("stub-worker");
    let text = format!(
        "#!/bin/sh\nRARE_STUB='{mark}' exec '{}' --exact {name} --nocapture --test-threads=1\n",
        program.display()
    );
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    Worker::at(&path).unwrap()
}

/// Lets one test at a time run trials: the orphans of two would look alike.
pub fn one_at_a_time() -> MutexGuard<'static, ()> {
    static RUNNING: Mutex<()> = Mutex::new(());
    RUNNING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A plan in a store of its own, with all that a run of it needs.
pub struct Bench {
    pub reports: PathBuf,
    pub plan: Plan,
    pub plan_folder: PlanFolder,
    pub host: Host,
    _folder: Option<TempDir>,
}

impl Bench {
    /// In a folder of its own, removed on drop.
    pub fn new(plan: Plan) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let bench = Self::at(folder.path(), plan);
        Self { _folder: Some(folder), ..bench }
    }

    /// In a folder that is there.
    pub fn at(reports: &Path, plan: Plan) -> Self {
        let store = Store::open(reports).unwrap();
        let plan_folder = store.create("test", plan.hash(), &plan.canonical()).unwrap();
        let host = host(&plan);
        Self { reports: reports.to_owned(), plan, plan_folder, host, _folder: None }
    }

    /// Opens the run of `worker`.
    pub fn begin(&self, worker: &Worker) -> Begun {
        let identity = Identity { worker_sha256: worker.sha256.clone(), machine: "here".to_owned() };
        choose::begin(&self.plan_folder, self.plan.hash(), &identity, false, ("20260102T030405Z", "host")).unwrap()
    }

    /// Executes what is missing, with `change` made to the job.
    pub fn execute(
        &self,
        worker: &Worker,
        observer: &mut dyn Observer,
        change: impl FnOnce(&mut Job<'_>),
    ) -> Result<Summary, RunError> {
        let interrupt = Interrupt::on_signals().unwrap();
        let Begun { run, mut journal, contents, .. } = self.begin(worker);
        let tools = rare::run::Tools::default();
        let mut job = Job {
            plan: &self.plan,
            worker,
            host: &self.host,
            tools: &tools,
            run: &run,
            retry_failed: false,
            budget: None,
            time_out: Some(Duration::from_secs(30)),
        };
        change(&mut job);
        execute(&job, &mut journal, &contents.trials, &interrupt, observer)
    }

    /// Reads the records of the newest run.
    pub fn records(&self) -> Vec<Trial> {
        let run = self.plan_folder.runs().unwrap().pop().unwrap();
        let contents = run.read().unwrap();
        assert_eq!(contents.torn, None);
        contents.trials
    }
}

/// Keeps what it is told.
#[derive(Default)]
pub struct Told {
    pub started: Vec<TrialId>,
    pub finished: Vec<TrialId>,
}

impl Observer for Told {
    fn started(&mut self, trial: TrialId, _position: u32) {
        self.started.push(trial);
    }

    fn finished(&mut self, record: &Trial) {
        self.finished.push(record.trial);
    }
}

/// Returns the processes whose environment or command line holds `mark`, without this one and dead ones.
pub fn processes_of(mark: &str) -> Vec<String> {
    let own = std::process::id().to_string();
    let mut found = Vec::new();
    for entry in std::fs::read_dir("/proc").unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        if name == own || !name.bytes().all(|byte| byte.is_ascii_digit()) {
            continue;
        }
        let read = |file: &str| std::fs::read(format!("/proc/{name}/{file}")).unwrap_or_default();
        let text = [read("environ"), read("cmdline")].concat();
        if String::from_utf8_lossy(&text).contains(mark) {
            found.push(format!("{name}: {}", String::from_utf8_lossy(&read("cmdline"))));
        }
    }
    found
}
