//! Binds a structure's type to the registry: one monomorphic instance of the trial for each.

use std::marker::PhantomData;

use super::{
    repertoire::{PointsOnly, Repertoire, WithRanges},
    trial::{self, Measurements},
};
use crate::{
    families::set::{ConcurrentSet, Parameters, RangeHandle, SetHandle},
    protocol::{Audit, Reclamation, Request},
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

/// The drivers of a structure that retires nodes to the scheme: one for each scheme under which it compiles. `Hazard` is
/// named by those that validate each step.
macro_rules! drivers {
    ($structure:ident $(, $hazard:ident)?) => {
        &[
            ($crate::protocol::Reclamation::None, $crate::harness::drivers!(@ $structure, NoReclamation)),
            ($crate::protocol::Reclamation::Epoch, $crate::harness::drivers!(@ $structure, Epoch)),
            ($crate::protocol::Reclamation::HYALINE, $crate::harness::drivers!(@ $structure, Hyaline)),
            ($crate::protocol::Reclamation::Eager, $crate::harness::drivers!(@ $structure, Eager)),
            $(($crate::protocol::Reclamation::$hazard, $crate::harness::drivers!(@ $structure, $hazard)),)?
        ]
    };
    (@ $structure:ident, $scheme:ident) => {
        &$crate::harness::SetDriver::<$structure<$crate::reclaim::$scheme>>::NEW
    };
}
pub(crate) use drivers;

/// The drivers of a structure for which the scheme means nothing, because it defers nothing: one for all schemes.
pub const fn under_every_scheme(driver: &'static dyn Driver) -> [(Reclamation, &'static dyn Driver); 5] {
    [
        (Reclamation::None, driver),
        (Reclamation::Epoch, driver),
        (Reclamation::HYALINE, driver),
        (Reclamation::Eager, driver),
        (Reclamation::Hazard, driver),
    ]
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
