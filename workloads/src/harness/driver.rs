//! Binds a structure's type to the registry: one monomorphic instance of the trial for each.

use std::marker::PhantomData;

use super::{
    repertoire::{PointsOnly, Repertoire, WithRanges},
    trial::{self, Measurements},
};
use crate::{
    families::set::{ConcurrentSet, Parameters, RangeHandle, SetHandle},
    protocol::{Audit, Request},
    structures::{Driver, ErasedSet},
};

/// The driver of one set structure under one reclamation scheme: both are in the type `S`, so that the loop is
/// monomorphic. `P` is what the structure can be asked for.
pub struct TypedDriver<S, P>(PhantomData<fn() -> (S, P)>);

/// The driver of a set structure.
pub type SetDriver<S> = TypedDriver<S, PointsOnly>;

/// The driver of a set structure that has a range query.
pub type RangeSetDriver<S> = TypedDriver<S, WithRanges>;

impl<S, P> TypedDriver<S, P> {
    /// The driver; it has no state.
    pub const NEW: Self = Self(PhantomData);
}

impl<S: ConcurrentSet, P: Repertoire<S>> Driver for TypedDriver<S, P> {
    fn trial(&self, request: &Request) -> Result<Measurements, String> {
        trial::run::<S, P>(request)
    }

    fn has_range_query(&self) -> bool {
        P::HAS_RANGES
    }

    fn erased(&self, parameters: &Parameters) -> Box<dyn ErasedSet> {
        Box::new(Erased::<S, P>(S::new(parameters), PhantomData))
    }
}

/// Hides the type of a set.
struct Erased<S, P>(S, PhantomData<fn() -> P>);

impl<S: ConcurrentSet, P: Repertoire<S>> ErasedSet for Erased<S, P> {
    fn handle(&self) -> Box<dyn SetHandle + '_> {
        Box::new(self.0.handle())
    }

    fn range_handle(&self) -> Option<Box<dyn RangeHandle + '_>> {
        P::range_handle(&self.0)
    }

    fn audit(&mut self) -> Audit {
        self.0.audit()
    }

    fn unreclaimed(&self) -> Option<u64> {
        self.0.unreclaimed()
    }
}
