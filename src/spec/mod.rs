//! The spec: the YAML file a person writes, compiled into a typed [`Spec`] or into diagnostics.
//!
//! Pure: text in, [`Spec`] or every mistake out. Must not read files or the machine.

pub mod model;
pub(crate) mod tree;
pub mod value;
pub(crate) mod yaml;

pub use model::Spec;
