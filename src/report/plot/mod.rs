//! Drawings as SVG, without fonts or other files of the machine.
//!
//! Pure. Raw values are drawn as they are: every trial is a mark, axes of throughput start at zero, and equal values
//! lie side by side.

mod blocks;
mod drift;
mod flame;
mod palette;
mod panel;
mod pen;
mod scale;
mod strip;
mod svg;

pub(crate) use blocks::{Blocks, Kind, LINE, Lane, Placed};
pub(crate) use drift::{Drift, Point};
pub(crate) use flame::{difference, flame};
pub(crate) use panel::{Panel, Row};
pub(crate) use pen::Sketch;
pub(crate) use strip::strip;
pub(crate) use svg::{Drawing, draw};
