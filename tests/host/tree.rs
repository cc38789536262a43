//! Unpacks a recorded machine: `tests/trees/*.tree` hold many small files of `/proc` and `/sys` in one.
//!
//! A line is one of these; `#` begins a comment, `\n` and `\t` in a text are a line end and a tab:
//!
//! ```text
//! PATH = TEXT                                   a file
//! cpu N: socket S die D core C threads LIST     the topology files of one CPU
//! ```

use std::{fs, path::Path};

use tempfile::TempDir;

/// A machine in a folder that goes with it.
pub struct Tree(TempDir);

impl Tree {
    /// Unpacks `tests/trees/NAME.tree`.
    pub fn recorded(name: &str) -> Self {
        let path = format!("{}/tests/trees/{name}.tree", env!("CARGO_MANIFEST_DIR"));
        Self::of(&fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path}: {error}")))
    }

    /// Unpacks a text.
    pub fn of(text: &str) -> Self {
        let tree = Self(tempfile::tempdir().unwrap());
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty() && !line.starts_with('#')) {
            match line.strip_prefix("cpu ") {
                Some(cpu) => tree.write_cpu(cpu),
                None => {
                    let (path, text) = line.split_once(" =").unwrap_or_else(|| panic!("not a line of a tree: {line}"));
                    tree.write(path, &text.trim_start().replace("\\n", "\n").replace("\\t", "\t"));
                }
            }
        }
        tree
    }

    /// Root to hand to readers.
    pub fn root(&self) -> &Path {
        self.0.path()
    }

    /// Writes or replaces one file.
    pub fn write(&self, path: &str, text: &str) {
        let path = self.root().join(path.trim_start_matches('/'));
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, format!("{text}\n")).unwrap();
    }

    fn write_cpu(&self, line: &str) {
        let (number, places) = line.split_once(": ").unwrap_or_else(|| panic!("not a CPU: {line}"));
        let words: Vec<&str> = places.split(' ').collect();
        let [_, socket, _, die, _, core, _, threads] = words[..] else { panic!("not a place: {line}") };
        let files =
            [("physical_package_id", socket), ("die_id", die), ("core_id", core), ("thread_siblings_list", threads)];
        for (name, text) in files {
            self.write(&format!("sys/devices/system/cpu/cpu{number}/topology/{name}"), text);
        }
    }
}
