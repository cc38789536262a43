//! Diagnostics: every mistake of a person, with its place, a stable code and help.
//!
//! Must not know specs: it renders what other layers found.

/// A place in a text: byte range.
pub type Span = std::ops::Range<usize>;
