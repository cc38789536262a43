//! Refuses plans that are too large before anything of them is built.
//!
//! The limits are the spec's, and the table of keys bounds them so that whatever passes fits in memory.

use super::{
    error::{Limit, PlanError},
    estimate::Estimate,
    expand,
};
use crate::spec::{Spec, model::Limits};

/// Counts the cells of the crossing and of the inclusions from the lengths of their axes.
///
/// # Errors
/// [`PlanError::OverLimit`] with the count.
pub(super) fn check_crossing(spec: &Spec) -> Result<(), PlanError> {
    let product = |lengths: Vec<usize>| lengths.into_iter().fold(1u128, |cells, it| cells.saturating_mul(it as u128));
    let count = expand::lengths(spec).map(product).fold(0, u128::saturating_add);
    check(Limit::Cells, spec.limits.cells, count)
}

/// Compares a number of trials with the limit of a spec.
pub(super) fn check_trials(spec: &Spec, n_trials: u128) -> Result<(), PlanError> {
    check(Limit::Trials, spec.limits.trials, n_trials)
}

impl Estimate {
    /// Compares the estimate with the limits of a spec.
    ///
    /// # Errors
    /// [`PlanError::OverLimit`] for the first limit that it exceeds.
    pub fn check(&self, limits: &Limits) -> Result<(), PlanError> {
        check(Limit::Time, limits.time.0, self.wall.0.into())?;
        check(Limit::Disk, limits.disk.0, self.disk.0.into())?;
        check(Limit::Memory, limits.memory.0, self.memory.0.into())
    }
}

fn check(limit: Limit, bound: u64, count: u128) -> Result<(), PlanError> {
    if count <= bound.into() { Ok(()) } else { Err(PlanError::OverLimit { limit, bound, count }) }
}
