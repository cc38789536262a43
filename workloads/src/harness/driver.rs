//! Binds a structure's type to the registry: one monomorphic instance of the trial for each.

use std::marker::PhantomData;

use super::trial::{self, Measurements};
use crate::{
    families::set::{ConcurrentSet, Parameters, SetHandle},
    protocol::{Audit, Request},
    structures::{Driver, ErasedSet},
};

/// The driver of one set structure under one reclamation scheme: both are in the type `S`, so that the loop is
/// monomorphic.
pub struct SetDriver<S>(PhantomData<fn() -> S>);

impl<S: ConcurrentSet> SetDriver<S> {
    /// The driver; it has no state.
    pub const NEW: Self = Self(PhantomData);
}

impl<S: ConcurrentSet> Driver for SetDriver<S> {
    fn trial(&self, request: &Request) -> Result<Measurements, String> {
        trial::run::<S>(request)
    }

    fn erased(&self, parameters: &Parameters) -> Box<dyn ErasedSet> {
        Box::new(Erased(S::new(parameters)))
    }
}

/// Hides the type of a set.
struct Erased<S>(S);

impl<S: ConcurrentSet> ErasedSet for Erased<S> {
    fn handle(&self) -> Box<dyn SetHandle + '_> {
        Box::new(self.0.handle())
    }

    fn audit(&mut self) -> Audit {
        self.0.audit()
    }

    fn unreclaimed(&self) -> Option<u64> {
        self.0.unreclaimed()
    }
}
