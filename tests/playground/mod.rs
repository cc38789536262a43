//! What integration tests share: a folder of one's own and the built command.
#![allow(dead_code, clippy::unwrap_used, reason = "each test binary uses a part of it, and stops where set-up fails")]

use std::{
    fs,
    path::{Path, PathBuf},
    process::{Command, Output},
    time::{Duration, Instant},
};

/// Eight trials and four accounting trials of real structures, in half a second.
pub const SPEC: &str = "\
rare: 1
name: small
question: Is it *fast*?
structures: [nm14, mutex-btree]
threads: [1, 2]
pinning: none
key_ranges: 100
mixes: {insert: 50, remove: 50}
trials: {count: 2, length: 30ms}
sanity_checks: [checksum, prefill, allocator]
";

/// Trials of [`SPEC`].
pub const N_TRIALS: usize = 12;

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

    /// The records that a run's journal holds, a line each. `done` told which run.
    pub fn records(&self, done: &Done) -> Vec<String> {
        let journal = self.path().join(done.word("run")).join("trials.jsonl");
        fs::read_to_string(journal).unwrap().lines().skip(1).map(str::to_owned).collect()
    }

    /// Waits until some journal below `reports` holds so many records.
    pub fn wait_for_records(&self, n_records: usize) {
        let since = Instant::now();
        while since.elapsed() < Duration::from_secs(30) {
            if journals(&self.path().join("reports")).iter().any(|text| text.lines().count() > n_records) {
                return;
            }
            std::thread::sleep(Duration::from_millis(20));
        }
        panic!("no {n_records} records in 30 s");
    }

    /// Runs `rare` and returns what came of it.
    pub fn run(&self, arguments: &[&str]) -> Done {
        Done::of(self.rare(arguments).output().expect("rare starts"))
    }
}

fn journals(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else { return Vec::new() };
    let mut found = Vec::new();
    for entry in entries.flatten() {
        if entry.path().is_dir() {
            found.extend(journals(&entry.path()));
        } else if entry.file_name() == "trials.jsonl" {
            found.extend(fs::read_to_string(entry.path()));
        }
    }
    found
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
