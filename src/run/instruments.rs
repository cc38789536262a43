//! Finds the tools that watch trials: where they are, what they are, and what they may do here.

use std::{io, path::Path, time::Duration};

use crate::{
    host::{environment::system::find_tool, events::Sampling},
    tools::{
        Answer, Missing,
        perf::{self, Attempt, Perf, Permission},
        valgrind::{self, Valgrind},
    },
};

/// A tool that does not tell its version within this time is broken.
const PATIENCE: Duration = Duration::from_secs(10);

/// Finds valgrind.
///
/// # Errors
/// [`Missing`] says what is lacking and what to do.
pub fn find_valgrind() -> Result<Valgrind, Missing> {
    valgrind::judge(answer("valgrind").as_ref())
}

/// Finds perf, and tries whether this user may sample.
///
/// # Errors
/// [`Missing`] says what is lacking and what to do.
pub fn find_perf() -> Result<Perf, Missing> {
    let Sampling { paranoid, clock, cycles } = Sampling::here();
    perf::judge(answer("perf").as_ref(), &Permission { paranoid, clock: attempt(clock), cycles: attempt(cycles) })
}

fn attempt(opened: io::Result<()>) -> Attempt {
    match opened {
        Ok(()) => Attempt::Works,
        Err(error) if error.kind() == io::ErrorKind::PermissionDenied => Attempt::Forbidden,
        Err(error) => Attempt::Fails(error.to_string()),
    }
}

/// Asks a tool for its version; `None` when it is not in the search path.
fn answer(name: &str) -> Option<Answer> {
    let path = find_tool(name)?;
    // A relative entry of the search path means another folder once a worker runs in its own.
    let path = std::path::absolute(path).ok()?;
    let printed = printed(&path);
    Some(Answer { path, printed })
}

fn printed(path: &Path) -> Result<String, String> {
    let run = || -> io::Result<Option<std::process::Output>> {
        let command = duct::cmd!(path, "--version").env("LC_ALL", "C").stdin_null();
        let handle = command.stdout_capture().stderr_capture().unchecked().start()?;
        let output = handle.wait_timeout(PATIENCE)?.cloned();
        if output.is_none() {
            handle.kill()?;
        }
        Ok(output)
    };
    let output = run().map_err(|error| error.to_string())?;
    let output = output.ok_or_else(|| format!("it does not end within {} s", PATIENCE.as_secs()))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(format!("{}: {}", output.status, String::from_utf8_lossy(&output.stderr).trim()))
}
