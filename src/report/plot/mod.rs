//! Drawings as SVG, without fonts or other files of the machine.
//!
//! Pure. Raw values are drawn as they are: every trial is a mark, axes start at zero, and equal values lie side by side.

mod palette;
mod panel;
mod scale;
mod svg;

pub(crate) use panel::{Panel, Row};
pub(crate) use svg::{Drawing, draw};
