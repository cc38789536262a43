//! The folders of runs: `runs/<utc>-<host>/` with `environment.json`, `trials.jsonl` and `artifacts/`.

use std::path::{Path, PathBuf};

use super::{Contents, Header, Journal, StoreError, journal, whole};
use crate::record::Environment;

/// Version of `environment.json`.
const ENVIRONMENT_FORMAT: u32 = 1;

/// Name of the journal.
const JOURNAL: &str = "trials.jsonl";

/// One run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RunFolder {
    path: PathBuf,
    id: String,
}

impl RunFolder {
    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns its name, `<utc>-<host>`.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// Returns where its journal is.
    pub fn journal_path(&self) -> PathBuf {
        self.path.join(JOURNAL)
    }

    /// Reads whose run it is; `None` when the journal is gone or ends within its header. A new run has it from the
    /// start.
    ///
    /// # Errors
    /// As [`journal::read_header`].
    pub fn header(&self) -> Result<Option<Header>, StoreError> {
        let path = self.journal_path();
        if path.exists() { journal::read_header(&path) } else { Ok(None) }
    }

    /// Reads the journal.
    ///
    /// # Errors
    /// As [`journal::read`].
    pub fn read(&self) -> Result<Contents, StoreError> {
        journal::read(&self.journal_path())
    }

    /// Returns the size of the journal in bytes.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn journal_bytes(&self) -> Result<u64, StoreError> {
        let path = self.journal_path();
        let metadata = path.metadata().map_err(StoreError::io("look at", &path))?;
        Ok(metadata.len())
    }

    /// Opens the journal for appending.
    ///
    /// # Errors
    /// As [`Journal::open`].
    pub fn append(&self, header: &Header) -> Result<(Journal, Contents), StoreError> {
        Journal::open(&self.journal_path(), header)
    }

    /// Keeps the good records of a damaged journal.
    ///
    /// # Errors
    /// As [`journal::repair`].
    pub fn repair(&self) -> Result<journal::Repair, StoreError> {
        journal::repair(&self.journal_path())
    }

    /// Reads the environment record; `None` when the run was killed before it was written.
    ///
    /// # Errors
    /// [`StoreError::Malformed`], [`StoreError::Newer`], [`StoreError::Io`].
    pub fn environment(&self) -> Result<Option<Environment>, StoreError> {
        let path = self.path.join("environment.json");
        if !path.exists() {
            return Ok(None);
        }
        let bytes = whole::read(&path)?;
        let malformed = |error: serde_json::Error| StoreError::Malformed { path: path.clone(), why: error.to_string() };
        let value: serde_json::Value = serde_json::from_slice(&bytes).map_err(malformed)?;
        match value.get("format").and_then(serde_json::Value::as_u64).and_then(|found| u32::try_from(found).ok()) {
            Some(found) if found > ENVIRONMENT_FORMAT => {
                Err(StoreError::Newer { path, found, known: ENVIRONMENT_FORMAT })
            }
            _ => serde_json::from_value(value).map(Some).map_err(malformed),
        }
    }

    /// Writes the environment record whole.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write_environment(&self, environment: &Environment) -> Result<(), StoreError> {
        let mut text = serde_json::to_vec_pretty(environment).expect("an environment is plain data");
        text.push(b'\n');
        whole::write(&self.path.join("environment.json"), &text)
    }

    /// Writes a file into `artifacts/` whole, such as what a worker printed.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write_artifact(&self, name: &str, content: &[u8]) -> Result<(), StoreError> {
        let folder = self.path.join("artifacts");
        whole::create_folder(&folder)?;
        whole::write(&folder.join(name), content)
    }
}

/// Lists the runs of a plan's folder, oldest first.
pub(super) fn list(plan_folder: &Path) -> Result<Vec<RunFolder>, StoreError> {
    let folder = plan_folder.join("runs");
    let names = whole::names(&folder)?.into_iter().filter(|name| !name.starts_with('.'));
    let runs = names.map(|id| RunFolder { path: folder.join(&id), id });
    Ok(runs.filter(|run| run.path.is_dir()).collect())
}

/// Creates a new run; one that began in the same second gets a number.
pub(super) fn create(
    plan_folder: &Path,
    utc: &str,
    host: &str,
    header: impl FnOnce(&str) -> Header,
) -> Result<RunFolder, StoreError> {
    let safe = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_lowercase() } else { '-' };
    let host: String = host.chars().map(safe).collect();
    let folder = plan_folder.join("runs");
    let ids = (1..).map(|n| if n == 1 { format!("{utc}-{host}") } else { format!("{utc}-{host}-{n}") });
    let mut free = ids.filter(|id| !folder.join(id).exists());
    let id = free.next().expect("a folder has fewer names than there are numbers");
    let path = folder.join(&id);
    let header = header(&id);
    whole::write_folder(&path, |hidden| journal::create(&hidden.join(JOURNAL), &header))?;
    Ok(RunFolder { path, id })
}

/// Copies a run of the same plan from another folder.
pub(super) fn adopt(plan_folder: &Path, run: &RunFolder) -> Result<RunFolder, StoreError> {
    let path = plan_folder.join("runs").join(&run.id);
    whole::write_folder(&path, |hidden| whole::copy(&run.path, hidden))?;
    Ok(RunFolder { path, id: run.id.clone() })
}
