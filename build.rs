//! Records how this build was made. Filled in by the environment record.
fn main() {}
