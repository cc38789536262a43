//! The command `rare`.

fn main() {}
