//! What integration tests share: a folder of one's own and the built command.
#![allow(dead_code, clippy::unwrap_used, reason = "each test binary uses a part of it, and stops where set-up fails")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
};

/// An empty folder in which one test runs `rare` without meeting the others.
pub struct Playground {
    folder: tempfile::TempDir,
}

impl Playground {
    /// Makes the folder.
    pub fn new() -> Self {
        Self { folder: tempfile::tempdir().expect("a temporary folder") }
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        self.folder.path()
    }

    /// Writes a file into it.
    pub fn write(&self, name: &str, text: &str) -> PathBuf {
        let path = self.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(&path, text).unwrap();
        path
    }

    /// The command `rare` in this folder, with a machine lock of its own so that tests may measure side by side.
    pub fn rare(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_rare"));
        command.args(arguments).current_dir(self.path()).env("RARE_MACHINE_LOCK", self.path().join("machine.lock"));
        command.env_remove("NO_COLOR").env("TERM", "dumb");
        command
    }

    /// Runs `rare` and returns what came of it.
    pub fn run(&self, arguments: &[&str]) -> Done {
        Done::of(self.rare(arguments).output().expect("rare starts"))
    }
}

/// A finished command.
pub struct Done {
    /// Exit code, or 128 + signal.
    pub code: i32,
    /// Standard output.
    pub stdout: String,
    /// Standard error.
    pub stderr: String,
}

impl Done {
    /// Reads the output of a finished command.
    pub fn of(output: Output) -> Self {
        use std::os::unix::process::ExitStatusExt;
        let code = output.status.code().unwrap_or_else(|| 128 + output.status.signal().unwrap_or(0));
        Self {
            code,
            stdout: String::from_utf8_lossy(&output.stdout).into_owned(),
            stderr: String::from_utf8_lossy(&output.stderr).into_owned(),
        }
    }

    /// Asserts the exit code, showing everything otherwise.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "stdout:\n{}\nstderr:\n{}", self.stdout, self.stderr);
        self
    }

    /// The first word after a label at the start of a line of standard output.
    #[track_caller]
    pub fn word(&self, label: &str) -> &str {
        self.stdout
            .lines()
            .find_map(|line| line.strip_prefix(label))
            .and_then(|rest| rest.split_whitespace().next())
            .unwrap_or_else(|| panic!("no line `{label} …` in\n{}\n{}", self.stdout, self.stderr))
    }
}
