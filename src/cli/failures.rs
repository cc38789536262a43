//! What failures of other layers mean to the user: exit code, line and advice.

use super::exit::{Exit, Failure, full};
use crate::{
    run::{ResolveError, RunError},
    store::StoreError,
};

/// So many reasons are enough to see what is wrong.
const MAX_REASONS: usize = 10;

/// This version or this machine cannot honour a plan.
pub(super) fn cannot(errors: &[ResolveError]) -> Failure {
    let mut errors = errors.iter();
    let first = errors.next().map_or_else(String::new, |error| full(error));
    let failure = Failure::new(Exit::Cannot, format!("this machine cannot honour the plan: {first}"));
    let n_more = errors.len().saturating_sub(MAX_REASONS);
    let failure =
        errors.take(MAX_REASONS).fold(failure, |failure, error| failure.help(format!("also: {}", full(error))));
    let failure = if n_more > 0 { failure.help(format!("and {n_more} reasons more")) } else { failure };
    failure.help("nothing ran; `rare doctor` tells what this machine can do, `rare list` what this version has")
}

/// A failure of the execution.
pub(super) fn run_failure(error: RunError) -> Failure {
    match error {
        RunError::Store(error) => store_failure(error),
        RunError::Resolve(errors) => cannot(&errors),
        RunError::Adopt(_) => Failure::from_error(Exit::Cannot, &error),
        // Trials may have run before.
        RunError::Watch { .. } => Failure::from_error(Exit::TrialsFailed, &error)
            .help("what was recorded before is intact; run the same command again when the cause is gone"),
    }
}

/// A failure of the store, with its advice.
pub(super) fn store_failure(error: StoreError) -> Failure {
    let exit = match error {
        StoreError::NotAPrefix { .. } | StoreError::NoSuchPlan { .. } | StoreError::Ambiguous { .. } => Exit::Wrong,
        _ => Exit::Store,
    };
    let help = error.help();
    Failure::from_error(exit, &error).help(help)
}
