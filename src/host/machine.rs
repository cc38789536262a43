//! A machine to read, and the reading of its files.
//!
//! A failure is never an empty value: it is the reason, in words that a report can print.

use std::{
    cell::RefCell,
    collections::BTreeMap,
    fs, io,
    path::{Path, PathBuf},
    rc::Rc,
};

/// What the kernel or a file told, or why it told nothing.
pub(crate) type Told = Result<String, String>;

/// Which machine to read, and the files of an experiment whose surroundings belong to the record.
#[derive(Clone, Copy, Debug)]
pub struct Machine<'m> {
    /// `/` for this machine; else a folder that holds a recorded `proc` and `sys`.
    pub root: &'m Path,
    /// Executable of the worker.
    pub worker: Option<&'m Path>,
    /// Folder of the reports.
    pub reports: Option<&'m Path>,
}

impl<'m> Machine<'m> {
    /// Returns the machine that this process runs on.
    pub fn here() -> Self {
        Self::recorded(Path::new("/"))
    }

    /// Returns the machine recorded below `root`. Nothing is asked from the kernel of this one.
    pub fn recorded(root: &'m Path) -> Self {
        Self { root, worker: None, reports: None }
    }

    /// Returns whether system calls speak of this machine.
    pub fn is_live(&self) -> bool {
        self.root == Path::new("/")
    }
}

/// Reads text files below a root, each at most once.
pub(crate) struct Tree {
    root: PathBuf,
    texts: RefCell<BTreeMap<String, Result<Rc<str>, String>>>,
}

impl Tree {
    pub(crate) fn new(root: &Path) -> Self {
        Self { root: root.to_owned(), texts: RefCell::default() }
    }

    /// Returns the trimmed text of a file; `path` is absolute, as the machine itself names it.
    pub(crate) fn text(&self, path: &str) -> Result<Rc<str>, String> {
        if let Some(text) = self.texts.borrow().get(path) {
            return text.clone();
        }
        let text = self.bytes(path).map(|bytes| Rc::from(String::from_utf8_lossy(&bytes).trim()));
        self.texts.borrow_mut().insert(path.to_owned(), text.clone());
        text
    }

    /// Returns the bytes of a file, not cached.
    pub(crate) fn bytes(&self, path: &str) -> Result<Vec<u8>, String> {
        fs::read(self.locate(path)).map_err(|error| reason(path, &error))
    }

    /// Returns the number in a file.
    pub(crate) fn number(&self, path: &str) -> Result<i64, String> {
        let text = self.text(path)?;
        text.parse().map_err(|_| format!("not a number: `{text}` in {path}"))
    }

    /// Returns the names in a folder; numbers within them ascend.
    pub(crate) fn names(&self, folder: &str) -> Result<Vec<String>, String> {
        let entries = fs::read_dir(self.locate(folder)).map_err(|error| reason(folder, &error))?;
        let mut names: Vec<String> =
            entries.flatten().map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort_by_cached_key(|name| natural(name));
        Ok(names)
    }

    /// Returns the paths that a pattern names, each with what its `*` stood for. `*` may stand in any part of the path
    /// but not for a `/`; what several of them stood for is joined by `/`.
    pub(crate) fn glob(&self, pattern: &str) -> Vec<(String, String)> {
        let mut found = vec![(String::new(), String::new())];
        for part in pattern.split('/').skip(1) {
            let Some((prefix, suffix)) = part.split_once('*') else {
                found.iter_mut().for_each(|(_, path)| *path = format!("{path}/{part}"));
                continue;
            };
            let mut deeper = Vec::new();
            for (label, path) in &found {
                for name in self.names(path).unwrap_or_default() {
                    let Some(middle) = name.strip_prefix(prefix).and_then(|name| name.strip_suffix(suffix)) else {
                        continue;
                    };
                    let label = if label.is_empty() { middle.to_owned() } else { format!("{label}/{middle}") };
                    deeper.push((label, format!("{path}/{name}")));
                }
            }
            found = deeper;
        }
        found.retain(|(_, path)| self.exists(path));
        found
    }

    pub(crate) fn exists(&self, path: &str) -> bool {
        self.locate(path).exists()
    }

    /// Returns where a path of the machine lies for this process.
    pub(crate) fn locate(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }
}

/// Says why a file could not be read.
pub(crate) fn reason(path: &str, error: &io::Error) -> String {
    match error.kind() {
        io::ErrorKind::NotFound => format!("no such file: {path}"),
        io::ErrorKind::PermissionDenied => format!("permission denied: {path}"),
        _ => format!("cannot read {path}: {error}"),
    }
}

/// Sorting key under which `cpu10` comes after `cpu2`.
fn natural(name: &str) -> (String, u64, String) {
    let start = name.find(|c: char| c.is_ascii_digit()).unwrap_or(name.len());
    let (prefix, rest) = name.split_at(start);
    let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
    (prefix.to_owned(), rest[..end].parse().unwrap_or(0), rest[end..].to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_carry_their_reason_and_the_path_of_the_machine() {
        let folder = tempfile::tempdir().unwrap();
        let tree = Tree::new(folder.path());
        assert_eq!(tree.text("/proc/none"), Err("no such file: /proc/none".into()));
        fs::create_dir_all(folder.path().join("proc/folder")).unwrap();
        assert!(tree.text("/proc/folder").unwrap_err().starts_with("cannot read /proc/folder: "));
        fs::write(folder.path().join("proc/word"), "many\n").unwrap();
        assert_eq!(tree.number("/proc/word"), Err("not a number: `many` in /proc/word".into()));
    }

    #[test]
    fn patterns_expand_in_numerical_order() {
        let folder = tempfile::tempdir().unwrap();
        for cpu in [0, 2, 10] {
            let path = folder.path().join(format!("sys/cpu{cpu}/state"));
            fs::create_dir_all(&path).unwrap();
            fs::write(path.join("name"), "C1").unwrap();
        }
        fs::create_dir_all(folder.path().join("sys/cpuidle")).unwrap();
        let tree = Tree::new(folder.path());
        let labels: Vec<String> = tree.glob("/sys/cpu*/state/name").into_iter().map(|(label, _)| label).collect();
        assert_eq!(labels, ["0", "2", "10"]);
        assert!(tree.glob("/sys/gpu*/name").is_empty());
    }
}
