//! What crate sdd keeps for the process, made before anything of a structure is counted.
//!
//! sdd, which reclaims for crate scc, puts its records of threads into arenas of 64 records and 8 KiB. An arena lives as
//! long as a thread that has a record in it, hence as the conducting thread; counted, it would look like a leak of the
//! structure.

use std::marker::PhantomData;

use scc::Guard;

use crate::{
    families::set::{ConcurrentSet, Parameters},
    harness::{Measurements, SetDriver},
    protocol::Request,
    structures::{Driver, ErasedSet},
};

/// The driver of a set of crate scc.
pub(super) struct SccDriver<S>(PhantomData<fn() -> S>);

impl<S: ConcurrentSet> SccDriver<S> {
    /// The driver; it has no state.
    pub(super) const NEW: Self = Self(PhantomData);
}

impl<S: ConcurrentSet> Driver for SccDriver<S> {
    fn trial(&self, request: &Request) -> Result<Measurements, String> {
        // The calling thread conducts the trial. Its first guard makes its record, and the arena.
        drop(Guard::new());
        SetDriver::<S>::NEW.trial(request)
    }

    fn erased(&self, parameters: &Parameters) -> Box<dyn ErasedSet> {
        SetDriver::<S>::NEW.erased(parameters)
    }
}
