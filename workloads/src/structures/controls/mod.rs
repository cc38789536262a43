//! Structures with one planted fault each, by which the checks are tested. Listed apart: none is a competitor.
//!
//! Each is a sound structure and one fault, and exactly one kind of check must catch it: the header of its file says
//! which, and why nothing else should. Most are [`faulty::Faulty`] around a structure of the catalogue; those whose fault
//! is in how nodes are laid out or given back are a [`forest::Forest`], because nodes are the structure's own affair.

mod chain;
mod dose;
mod faulty;
pub mod forest;

pub mod bad_padding;
pub mod decay;
pub mod double_remove;
pub mod false_sharing;
pub mod interleaved;
pub mod leak;
pub mod lost_update;
pub mod never_frees;
pub mod size_drift;
pub mod unfair;
pub mod use_after_free;

use super::Structure;

/// Every control, in the order in which listings show them.
pub static ALL: &[&Structure] = &[
    &lost_update::CONTROL,
    &double_remove::CONTROL,
    &size_drift::CONTROL,
    &leak::CONTROL,
    &never_frees::CONTROL,
    &use_after_free::CONTROL,
    &false_sharing::CONTROL,
    &interleaved::CONTROL,
    &bad_padding::CONTROL,
    &unfair::CONTROL,
    &decay::CONTROL,
];
