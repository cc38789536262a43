//! The tools under which some trials run: prepared before the worker is started, read after it has ended.

use std::{collections::BTreeMap, ffi::OsString, fs, io, path::Path, sync::OnceLock};

use rare_workloads::protocol::{Request, Watch};

use super::instruments;
use crate::{
    plan::Mode,
    record::{Watched, watched::Profile},
    store::scratch::Scratch,
    tools::{
        Missing, callgrind,
        lines::Lines,
        memcheck,
        perf::Perf,
        profile::{self, Program},
        valgrind::{self, Caches, Valgrind},
    },
};

/// Names of the files in the folder of a trial.
const OUTPUT: &str = "output";
const SUPPRESSIONS: &str = "suppressions";
const CONTROL: &str = "control";
const ACKNOWLEDGEMENT: &str = "acknowledgement";

/// The tools of this machine, looked for when the first trial needs them.
#[derive(Debug, Default)]
pub struct Tools {
    valgrind: OnceLock<Result<Valgrind, Missing>>,
    perf: OnceLock<Result<Perf, Missing>>,
}

impl Tools {
    fn valgrind(&self) -> Result<&Valgrind, NoTool> {
        let found = self.valgrind.get_or_init(instruments::find_valgrind);
        found.as_ref().map_err(|missing| NoTool(missing.to_string()))
    }

    fn perf(&self) -> Result<&Perf, NoTool> {
        let found = self.perf.get_or_init(instruments::find_perf);
        found.as_ref().map_err(|missing| NoTool(missing.to_string()))
    }

    /// Says what is missing for trials of a mode, if anything.
    pub fn missing(&self, mode: Mode) -> Option<String> {
        let found = match mode {
            Mode::Timed | Mode::Account | Mode::Layout | Mode::Counters => Ok(()),
            Mode::Memcheck | Mode::Simulate => self.valgrind().map(drop),
            Mode::Sample => self.perf().map(drop),
        };
        found.err().map(|NoTool(why)| why)
    }
}

/// Why a trial is not begun: its tool is not there, or may not be used.
#[derive(Debug)]
pub(super) struct NoTool(pub(super) String);

/// A tool that is ready to run one worker.
pub(super) struct Tool<'t> {
    kind: Kind<'t>,
    scratch: Scratch,
    /// The command line before the worker's own.
    pub(super) prefix: Vec<String>,
}

#[derive(Clone, Copy)]
enum Kind<'t> {
    Memcheck,
    Callgrind,
    Perf(&'t Perf),
}

impl<'t> Tool<'t> {
    /// Prepares the tool of a mode for one request, which is told where the tool listens. `None` for a mode without one.
    ///
    /// # Errors
    /// [`NoTool`].
    pub(super) fn prepare(tools: &'t Tools, mode: Mode, request: &mut Request) -> Result<Option<Self>, NoTool> {
        let unmade = |error: &dyn std::error::Error| NoTool(format!("{error}: {}", sources(error)));
        let scratch = || Scratch::new().map_err(|error| unmade(&error));
        let n_threads = request.cpus.len();
        let tool = match mode {
            Mode::Timed | Mode::Account | Mode::Layout | Mode::Counters => return Ok(None),
            Mode::Memcheck => {
                let (valgrind, scratch) = (tools.valgrind()?, scratch()?);
                scratch.write(SUPPRESSIONS, valgrind::SUPPRESSIONS.as_bytes()).map_err(|error| unmade(&error))?;
                let prefix = valgrind.memcheck(&path(&scratch, OUTPUT)?, &path(&scratch, SUPPRESSIONS)?, n_threads);
                Self { kind: Kind::Memcheck, scratch, prefix }
            }
            Mode::Simulate => {
                let (valgrind, scratch) = (tools.valgrind()?, scratch()?);
                let prefix = valgrind.callgrind(&path(&scratch, OUTPUT)?, &Caches::default(), n_threads);
                Self { kind: Kind::Callgrind, scratch, prefix }
            }
            Mode::Sample => {
                let (perf, scratch) = (tools.perf()?, scratch()?);
                for name in [CONTROL, ACKNOWLEDGEMENT] {
                    scratch.fifo(name).map_err(|error| unmade(&error))?;
                }
                let (control, acknowledgement) = (path(&scratch, CONTROL)?, path(&scratch, ACKNOWLEDGEMENT)?);
                let prefix = perf.record(&path(&scratch, OUTPUT)?, &control, &acknowledgement);
                request.watch = Some(Watch::Perf { control, acknowledgement });
                Self { kind: Kind::Perf(perf), scratch, prefix }
            }
        };
        Ok(Some(tool))
    }

    /// Reads what the tool saw of a worker.
    ///
    /// # Errors
    /// In words: what is wrong with its output.
    pub(super) fn read(&self, worker: &Path) -> Result<Watched, String> {
        let output = || self.scratch.read(OUTPUT).map_err(|error| format!("its output cannot be read: {error}"));
        match self.kind {
            Kind::Memcheck => memcheck::read(&output()?).map(Watched::Memcheck).map_err(|error| error.to_string()),
            Kind::Callgrind => {
                callgrind::read(&[&output()?]).map(Watched::Simulated).map_err(|error| error.to_string())
            }
            Kind::Perf(perf) => {
                let printed = printed(&perf.script(&path(&self.scratch, OUTPUT).map_err(|NoTool(why)| why)?))?;
                profiled(&printed, worker).map(Watched::Profile)
            }
        }
    }

    /// Returns the tool's name.
    pub(super) fn name(&self) -> &'static str {
        match self.kind {
            Kind::Memcheck => "memcheck",
            Kind::Callgrind => "callgrind",
            Kind::Perf(_) => "perf",
        }
    }
}

/// Reads samples, with the source lines of the worker where its debug information tells them.
fn profiled(printed: &[u8], worker: &Path) -> Result<Profile, String> {
    let elf = fs::read(worker).map_err(|error| format!("`{}` cannot be read: {error}", worker.display()))?;
    let lines = Lines::new(&elf).map_err(|error| format!("`{}`: {error}", worker.display()))?;
    let path = worker.to_str().ok_or_else(|| format!("`{}` is not UTF-8", worker.display()))?;
    profile::read(printed, Some(&Program { path, lines: &lines })).map_err(|error| error.to_string())
}

fn sources(error: &dyn std::error::Error) -> String {
    error.source().map_or_else(String::new, ToString::to_string)
}

fn path(scratch: &Scratch, name: &str) -> Result<String, NoTool> {
    let path = scratch.path(name).into_os_string();
    path.into_string().map_err(|path: OsString| NoTool(format!("`{}` is not UTF-8", Path::new(&path).display())))
}

/// Runs a program that prints what another one recorded.
fn printed(words: &[String]) -> Result<Vec<u8>, String> {
    let (program, arguments) = words.split_first().expect("a command line begins with its program");
    // Its words must not depend on the user's language.
    let environment = BTreeMap::from([("LC_ALL", "C")]);
    let run = || -> io::Result<std::process::Output> {
        duct::cmd(program, arguments)
            .full_env(environment)
            .stdin_null()
            .stdout_capture()
            .stderr_capture()
            .unchecked()
            .run()
    };
    let output = run().map_err(|error| format!("`{program}` cannot be run: {error}"))?;
    if output.status.success() {
        return Ok(output.stdout);
    }
    let said = String::from_utf8_lossy(&output.stderr);
    Err(format!(
        "`{}` failed: {}",
        words[..2.min(words.len())].join(" "),
        said.trim().lines().next().unwrap_or("it says nothing")
    ))
}
