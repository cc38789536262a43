//! What a driver can ask of its structure: the operations on single keys, or range queries too.
//!
//! Chosen by type, so that a structure without a range query needs no code for one, and a trial without range queries runs
//! the very loop that it would run on such a structure.

use super::{
    member::{Failure, Measured, Place, Stage},
    window::{Generator, SizedRanges},
};
use crate::{
    families::set::{ConcurrentSet, RangeHandle},
    keys::KeySource,
};

/// What can be asked of the structure `S`.
pub(crate) trait Repertoire<S: ConcurrentSet>: 'static {
    /// Whether range queries are among it.
    const HAS_RANGES: bool;

    /// Registers the calling thread for range queries; `None` if there are none.
    fn range_handle(set: &S) -> Option<Box<dyn RangeHandle + '_>>;

    /// Measures the window of one thread, with the operations that the request asks for.
    fn measure<K: KeySource>(
        stage: &Stage<'_, S>,
        handle: &mut S::Handle<'_>,
        keys: K,
        place: Place<'_>,
    ) -> Result<Measured, Failure>;
}

/// Operations on single keys.
pub struct PointsOnly;

/// Operations on single keys, and range queries.
pub struct WithRanges;

impl<S: ConcurrentSet> Repertoire<S> for PointsOnly {
    const HAS_RANGES: bool = false;

    fn range_handle(_set: &S) -> Option<Box<dyn RangeHandle + '_>> {
        None
    }

    fn measure<K: KeySource>(
        stage: &Stage<'_, S>,
        handle: &mut S::Handle<'_>,
        keys: K,
        place: Place<'_>,
    ) -> Result<Measured, Failure> {
        let request = stage.request;
        stage.measure(handle, Generator::new(keys, request.mix, request.seed, place.thread_idx), place)
    }
}

impl<S> Repertoire<S> for WithRanges
where
    S: ConcurrentSet,
    for<'s> S::Handle<'s>: RangeHandle,
{
    const HAS_RANGES: bool = true;

    fn range_handle(set: &S) -> Option<Box<dyn RangeHandle + '_>> {
        Some(Box::new(set.handle()))
    }

    fn measure<K: KeySource>(
        stage: &Stage<'_, S>,
        handle: &mut S::Handle<'_>,
        keys: K,
        place: Place<'_>,
    ) -> Result<Measured, Failure> {
        let request = stage.request;
        if request.mix.range == 0 {
            return PointsOnly::measure(stage, handle, keys, place);
        }
        let n_keys = request.range_keys.ok_or_else(|| "the range queries have no size".to_owned())?;
        let ranges = SizedRanges::new(request.mix, n_keys);
        let generator = Generator::with_ranges(keys, request.mix, ranges, request.seed, place.thread_idx);
        stage.measure(handle, generator, place)
    }
}
