//! The commands: the only layer that prints, and the one that joins all others.

use std::{
    io,
    panic::{self, AssertUnwindSafe},
    path::Path,
    process::ExitCode,
    sync::{Mutex, PoisonError},
};

use clap::Parser;

mod arguments;
mod catalogue;
mod check;
mod command;
mod console;
mod documents;
mod exit;
mod experiment;
mod failures;
mod machine;
mod make;
mod man;
mod measure;
mod plan;
mod progress;
mod report;
mod rerun;
mod selftest;
mod session;
mod standing;
mod statement;
mod store;

use arguments::{Arguments, Command};
use console::Console;
use exit::{Exit, Failure};

use crate::host::topology::Topology;

/// Runs the command line and returns its exit code.
pub fn main() -> ExitCode {
    let arguments = match Arguments::try_parse() {
        Ok(arguments) => arguments,
        Err(error) => return unparsed(&error).into(),
    };
    panic::set_hook(Box::new(|panic| {
        let place = panic.location().map(|at| format!(" at {}:{}", at.file(), at.line()));
        *BUG_PLACE.lock().unwrap_or_else(PoisonError::into_inner) = place;
    }));
    let console = Console::new(arguments.quiet);
    let outcome = panic::catch_unwind(AssertUnwindSafe(|| {
        let exit = dispatch(&console, arguments.command)?;
        console.finish()?;
        Ok(exit)
    }));
    let outcome = outcome.unwrap_or_else(|payload| Err(bug(payload.as_ref())));
    match outcome {
        Ok(exit) => exit.into(),
        Err(failure) => {
            console.failure(&failure);
            failure.exit.into()
        }
    }
}

/// Prints help and version, which are asked for, to standard output, and mistakes to standard error.
fn unparsed(error: &clap::Error) -> Exit {
    let exit = if error.use_stderr() { Exit::Wrong } else { Exit::Valid };
    match error.print() {
        Err(cause) if !error.use_stderr() && cause.kind() != io::ErrorKind::BrokenPipe => {
            let failure = console::output_failure(&cause);
            Console::new(false).failure(&failure);
            failure.exit
        }
        _ => exit,
    }
}

fn dispatch(console: &Console, command: Command) -> Result<Exit, Failure> {
    match command {
        Command::Make(arguments) => make::make(console, &arguments),
        Command::Run(arguments) => make::run(console, &arguments),
        Command::Check(arguments) => check::check(console, &arguments),
        Command::Plan(arguments) => plan::plan(console, &arguments),
        Command::Report(arguments) => report::report(console, &arguments),
        Command::Rerun(arguments) => rerun::rerun(console, &arguments),
        Command::List(arguments) => catalogue::list(console, &arguments),
        Command::Show(arguments) => store::show(console, &arguments),
        Command::Verify(arguments) => store::verify(console, &arguments),
        Command::Explain { term } => documents::explain(console, term.as_deref()),
        Command::Schema => documents::schema(console),
        Command::Selftest(arguments) => selftest::selftest(console, &arguments),
        Command::Doctor(arguments) => machine::doctor(console, &arguments),
        Command::Completions { shell } => documents::completions(console, shell),
        Command::Man => man::man(console),
    }
}

/// Where the last panic was.
static BUG_PLACE: Mutex<Option<String>> = Mutex::new(None);

/// A panic is a broken invariant of ours: it is said on one line, without a backtrace.
fn bug(payload: &(dyn std::any::Any + Send)) -> Failure {
    let message = payload.downcast_ref::<String>().map(String::as_str).or(payload.downcast_ref::<&str>().copied());
    let place = BUG_PLACE.lock().unwrap_or_else(PoisonError::into_inner).take().unwrap_or_default();
    Failure::new(Exit::Bug, format!("bug in rare{place}: {}", message.unwrap_or("a panic without a message")))
        .help("this should not happen whatever the spec says; please report it with the spec")
}

/// Returns how many CPUs this process may use, for estimates; 1 where the machine does not tell.
fn n_cpus() -> u32 {
    let topology = Topology::read(Path::new("/"));
    topology.ok().and_then(|topology| u32::try_from(topology.n_allowed()).ok()).unwrap_or(1)
}

/// Returns the present moment, RFC 3339 UTC: who holds a lock since when.
fn now() -> String {
    format!("{:.3}", jiff::Timestamp::now())
}

/// The exit codes as the help shows them.
fn exit_help() -> String {
    let lines = Exit::TABLE.map(|(exit, meaning)| format!("  {:>3}  {meaning}", exit as u8));
    format!("Exit codes:\n{}", lines.join("\n"))
}
