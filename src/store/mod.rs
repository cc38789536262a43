//! The store: every file that `rare` writes.
//!
//! Owns the layout of `reports/`, the journal of trials, locks and manifests. Must not start processes and must not
//! know how trials are run or judged. A file appears whole or not at all; only the journal grows.

pub mod error;
pub mod journal;
pub mod lock;
pub mod manifest;
pub mod plans;
pub mod runs;
pub mod scratch;
pub mod whole;

mod line;

pub use error::StoreError;
pub use journal::{Contents, Header, Journal};
pub use lock::Lock;
pub use plans::{PlanFolder, Store};
pub use runs::RunFolder;
