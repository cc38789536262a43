//! The measuring loop and everything around it: pinning, prefill, window, sampler, audits.
//!
//! Must not judge: what was measured is handed on as it is, and what could not be done as asked is an error in words.

mod clock;
mod crew;
mod driver;
mod fault;
mod kernel;
mod member;
mod memory;
pub mod pin;
mod repertoire;
pub mod stream;
mod trial;
pub mod window;

pub(crate) use clock::now_ns;
pub(crate) use driver::drivers;
pub use driver::{RangeSetDriver, SetDriver, under_every_scheme};
pub use trial::Measurements;
pub(crate) use trial::panic_message;
