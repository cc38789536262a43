//! Finds the worker that belongs to this build of `rare`, and builds it when it is missing or stale.

use std::{
    env, fs, io,
    path::{Path, PathBuf},
};

use rare_workloads::{identity::Identity, protocol::frame::sha256_hex};

/// Environment variable that names another worker.
pub const WORKER_VARIABLE: &str = "RARE_WORKER";

/// Name of the worker's binary.
const NAME: &str = "rare-worker";

/// Source tree of this build.
const SOURCE: &str = env!("CARGO_MANIFEST_DIR");

/// The program that runs trials.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Worker {
    /// Absolute path.
    pub path: PathBuf,
    /// SHA-256 of the binary, 64 hexadecimal digits.
    pub sha256: String,
}

/// Why there is no usable worker.
#[derive(Debug, thiserror::Error)]
pub enum WorkerError {
    /// This program does not know where it is.
    #[error("cannot find the folder of this program")]
    Here(#[source] io::Error),
    /// There is none, and no source to build it from.
    #[error(
        "there is no `{}`, and no source tree at `{SOURCE}` to build it from; build it with `cargo build --bin {NAME}` \
         and put it beside `rare`, or name it in {WORKER_VARIABLE}",
        path.display()
    )]
    Missing {
        /// Where it should be.
        path: PathBuf,
    },
    /// It belongs to another build, and there is no source to build it from.
    #[error("`{}` does not belong to this build of rare: {why}; remove it and build both from one source tree", path.display())]
    Stale {
        /// Where it is.
        path: PathBuf,
        /// What differs.
        why: String,
    },
    /// The one that the environment names is not there or belongs to another build.
    #[error("{WORKER_VARIABLE} names `{}`, {why}; unset it, or name the worker of this build", path.display())]
    Named {
        /// What the variable names.
        path: PathBuf,
        /// What is wrong with it.
        why: String,
    },
    /// Building it failed; Cargo has said why.
    #[error("cannot build the worker: `{command}` failed")]
    Build {
        /// The command.
        command: String,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// Its binary cannot be read.
    #[error("cannot read `{}`", path.display())]
    Read {
        /// Where it is.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
}

impl Worker {
    /// Takes the worker at `path` as it is, without asking whether it belongs to this build.
    ///
    /// # Errors
    /// [`WorkerError::Read`].
    pub fn at(path: &Path) -> Result<Self, WorkerError> {
        let read = |source| WorkerError::Read { path: path.to_owned(), source };
        let path = path.canonicalize().map_err(read)?;
        let sha256 = sha256_hex(&fs::read(&path).map_err(read)?);
        Ok(Self { path, sha256 })
    }

    /// Finds the worker as [`Worker::locate`] does, and builds none: `None` when there is none that belongs to this build.
    pub fn present() -> Option<Self> {
        let path = named().or_else(|| Some(folder().ok()?.join(NAME)))?;
        if path.is_file() && difference(&path).is_none() { Self::at(&path).ok() } else { None }
    }

    /// Finds the worker: the one that `RARE_WORKER` names, else `rare-worker` beside this program, which is built first
    /// when it is missing or belongs to another build. `say` is told before the build, which takes a while.
    ///
    /// # Errors
    /// [`WorkerError`], each with what to do.
    pub fn locate(say: &mut dyn FnMut(&str)) -> Result<Self, WorkerError> {
        if let Some(path) = named() {
            let stale = |difference| format!("which does not belong to this build of rare: {difference}");
            let fault =
                if path.is_file() { difference(&path).map(stale) } else { Some("which is not there".to_owned()) };
            return match fault {
                Some(why) => Err(WorkerError::Named { path, why }),
                None => Self::at(&path),
            };
        }
        let folder = folder().map_err(WorkerError::Here)?;
        let path = folder.join(NAME);
        let exists = path.is_file();
        let Some(why) = (if exists { difference(&path) } else { Some("it is not there".to_owned()) }) else {
            return Self::at(&path);
        };
        if !Path::new(SOURCE).join("Cargo.toml").is_file() {
            return Err(if exists { WorkerError::Stale { path, why } } else { WorkerError::Missing { path } });
        }
        say(&format!("building {NAME}: {why}"));
        let path = build(&folder)?;
        // Cargo found nothing to do or built from changed sources: then it is `rare` itself that is stale.
        match difference(&path) {
            Some(why) => Err(WorkerError::Stale { path, why }),
            None => Self::at(&path),
        }
    }
}

/// Returns the worker that the environment names.
fn named() -> Option<PathBuf> {
    env::var_os(WORKER_VARIABLE).filter(|path| !path.is_empty()).map(PathBuf::from)
}

/// Returns the folder of this program; for a test, that of the programs it tests.
fn folder() -> io::Result<PathBuf> {
    let program = env::current_exe()?.canonicalize()?;
    let folder = program.parent().expect("a program lies in a folder");
    Ok(if folder.ends_with("deps") { folder.parent().unwrap_or(folder) } else { folder }.to_owned())
}

/// Says in what a worker differs from this build; `None` when it belongs to it.
fn difference(path: &Path) -> Option<String> {
    let printed = match duct::cmd!(path, "--identity").stderr_null().stdin_null().read() {
        Ok(printed) => printed,
        Err(error) => return Some(format!("it does not tell its identity: {error}")),
    };
    let theirs: Identity = match serde_json::from_str(&printed) {
        Ok(identity) => identity,
        Err(_) => return Some("it tells its identity in another format".to_owned()),
    };
    let ours = Identity::here();
    if theirs == ours {
        return None;
    }
    let fields = [
        ("sources", &theirs.source_sha256, &ours.source_sha256),
        ("profile", &theirs.profile, &ours.profile),
        ("optimisation level", &theirs.opt_level, &ours.opt_level),
        ("compiler", &theirs.rustc, &ours.rustc),
        ("target", &theirs.target, &ours.target),
    ];
    let differing = fields.into_iter().find(|(_, theirs, ours)| theirs != ours);
    Some(match differing {
        Some((name, theirs, ours)) => format!("its {name} is `{theirs}`, ours is `{ours}`"),
        None => "its compiler flags, allocators or protocol differ".to_owned(),
    })
}

/// Builds the worker with the profile of this program, beside it if that is where Cargo puts it.
fn build(folder: &Path) -> Result<PathBuf, WorkerError> {
    let release = Identity::here().profile == "release";
    let profile_folder = if release { "release" } else { "debug" };
    let target = match folder.parent() {
        Some(target) if folder.ends_with(profile_folder) => target.to_owned(),
        _ => Path::new(SOURCE).join("target"),
    };
    let mut arguments = vec!["build", "--locked", "--bin", NAME];
    arguments.extend(release.then_some("--release"));
    let command = format!("cargo {}", arguments.join(" "));
    let arguments =
        arguments.into_iter().map(Into::into).chain(["--target-dir".into(), target.clone().into_os_string()]);
    duct::cmd("cargo", arguments)
        // Cargo finds the compiler's flags by the folder in which it runs.
        .dir(SOURCE)
        // Standard output is the report's path; whatever Cargo says goes to standard error.
        .stdout_to_stderr()
        .run()
        .map_err(|source| WorkerError::Build { command, source })?;
    Ok(target.join(profile_folder).join(NAME))
}
