//! The spec: the YAML file a person writes, compiled into a typed [`Spec`] or into diagnostics.
//!
//! Pure: text in, [`Spec`] or every mistake out. Must not read files or the machine.

mod catalogue;
mod compile;
mod explain;
pub mod fields;
mod findings;
mod keys;
mod lower;
mod meaning;
pub mod model;
mod schema;
pub(crate) mod suggest;
mod tree;
pub mod value;
pub mod words;
mod yaml;

pub use catalogue::Catalogue;
pub use compile::{Compiled, compile, compile_with};
pub use explain::explain;
pub use findings::{
    claim_matches_no_cell, compare_pairs_nothing, include_adds_nothing, no_cell_left, rule_matches_nothing,
};
pub use meaning::describe;
pub use model::Spec;
pub use schema::schema;
