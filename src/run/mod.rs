//! Running a plan: workers, time-outs, what to do next, and where it goes.
//!
//! The only layer that starts processes. Writes through `store` alone, prints nothing (an [`Observer`] is told), and
//! judges nothing: a trial with a complete reply is recorded as it is.

pub mod choose;
pub mod execute;
pub mod instruments;
pub mod interrupt;
pub mod resolve;
pub mod worker;

mod attempt;
mod classify;
mod descendants;
mod launch;
mod progress;
mod supervise;
mod tool;

pub use choose::{Begun, Choice, Identity, begin, choose};
pub use execute::{Job, Observer, RunError, Stop, Summary, check, execute, missing};
pub use interrupt::Interrupt;
pub use resolve::{Host, ResolveError, resolve};
pub use tool::Tools;
pub use worker::{Worker, WorkerError};
