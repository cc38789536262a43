//! The abstract data types under test, each with its operations and its conservation law.

pub mod set;
