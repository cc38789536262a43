//! What the exit code of `rare` says.

/// Exit codes. Where several apply, the highest of 4, 5 and 6 wins.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
#[repr(u8)]
pub enum Exit {
    /// Everything is valid.
    Valid = 0,
    /// A bug in `rare`.
    Bug = 1,
    /// The spec or the command line is wrong; nothing ran.
    Wrong = 2,
    /// This machine cannot honour the spec; nothing ran.
    Cannot = 3,
    /// Some trials failed or timed out.
    TrialsFailed = 4,
    /// A sanity check or a claim failed.
    CheckFailed = 5,
    /// The store is damaged or locked, or a file could not be read or written.
    Store = 6,
    /// The plan is over a limit; nothing ran.
    OverLimit = 7,
    /// Interrupted by SIGINT; the store is consistent.
    Interrupted = 130,
    /// Terminated by SIGTERM; the store is consistent.
    Terminated = 143,
}

impl Exit {
    /// Every code with what it means, for help and man page.
    pub const TABLE: [(Self, &'static str); 10] = [
        (Self::Valid, "everything is valid"),
        (Self::Bug, "bug in rare"),
        (Self::Wrong, "spec or command line is wrong; nothing ran"),
        (Self::Cannot, "this machine cannot honour the spec; nothing ran"),
        (Self::TrialsFailed, "some trials failed or timed out"),
        (Self::CheckFailed, "a sanity check or a claim failed"),
        (Self::Store, "store damaged or locked, or a file could not be read or written"),
        (Self::OverLimit, "plan over a limit; nothing ran"),
        (Self::Interrupted, "interrupted; the store is consistent"),
        (Self::Terminated, "terminated; the store is consistent"),
    ];
}

impl From<Exit> for std::process::ExitCode {
    fn from(exit: Exit) -> Self {
        Self::from(exit as u8)
    }
}

/// A failure that ends a command: its code, one line that says what and where, and what to do.
#[derive(Debug)]
pub struct Failure {
    /// Exit code.
    pub exit: Exit,
    /// What and where, on the first line; a template's faults show its lines below.
    pub what: String,
    /// What to do about it, one line each.
    pub help: Vec<String>,
}

impl Failure {
    /// Makes a failure without advice.
    pub fn new(exit: Exit, what: impl Into<String>) -> Self {
        Self { exit, what: what.into(), help: Vec::new() }
    }

    /// Makes a failure from an error and its causes.
    pub fn from_error(exit: Exit, error: &dyn std::error::Error) -> Self {
        Self::new(exit, full(error))
    }

    /// Adds a line of advice.
    #[must_use]
    pub fn help(mut self, line: impl Into<String>) -> Self {
        self.help.push(line.into());
        self
    }
}

/// Returns an error and its causes on one line.
pub fn full(error: &dyn std::error::Error) -> String {
    let causes = std::iter::successors(error.source(), |cause| cause.source());
    causes.fold(error.to_string(), |text, cause| format!("{text}: {cause}"))
}
