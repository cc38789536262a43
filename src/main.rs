//! The command `rare`.

use std::process::ExitCode;

fn main() -> ExitCode {
    rare::cli::main()
}
