//! The measured process: a fresh one for each trial. `rare` starts it; people do not.

use std::process::ExitCode;

#[global_allocator]
static ALLOCATOR: rare_workloads::alloc::Dispatch = rare_workloads::alloc::Dispatch;

fn main() -> ExitCode {
    rare_workloads::worker::main()
}
