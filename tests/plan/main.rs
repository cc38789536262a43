//! Plans through their public door: expansion, identity, bytes, and reading back.

mod estimate;
mod expand;
mod format;
mod golden;
mod identity;
mod limits;
mod specs;
