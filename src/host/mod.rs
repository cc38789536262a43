//! The machine: what it is, what it can honour, and what else happened on it.
//!
//! Only this layer reads `/proc`, `/sys` and the like. It starts no process and writes no file. Everything is read below
//! a root path, so that trees recorded on other machines are read by the same code.

pub mod artifact;
pub mod build;
pub mod cpu_list;
pub mod digest;
pub mod doctor;
pub mod elf;
pub mod environment;
pub mod events;
pub mod interference;
pub mod machine;
pub mod pinning;
pub mod preload;
pub mod topology;

pub use cpu_list::CpuList;
pub use machine::Machine;
pub use pinning::PinError;
pub use topology::Topology;
