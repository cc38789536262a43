//! What can go wrong with the store.

use std::{
    io,
    path::{Path, PathBuf},
};

use crate::plan::TrialId;

/// A failure of the store: the act and the object; the cause is the source.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// The system refused an operation: full disk, missing permission, failing device.
    #[error("cannot {act} `{}`", path.display())]
    Io {
        /// What was tried, as a verb.
        act: &'static str,
        /// On which file or folder.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A record could not be made durable; it does not count.
    #[error("cannot append record of trial `{trial}` to `{}`", path.display())]
    Append {
        /// Whose record.
        trial: TrialId,
        /// Which journal.
        path: PathBuf,
        /// Why not.
        #[source]
        source: io::Error,
    },
    /// A journal is damaged before its tail.
    #[error("`{}` is damaged at record {record}, byte {offset}: {why}", path.display())]
    Damaged {
        /// Which journal.
        path: PathBuf,
        /// Line of the record, from 0; 0 is the header.
        record: u64,
        /// Where the line begins.
        offset: u64,
        /// What does not hold.
        why: String,
    },
    /// A file is not what it should be.
    #[error("`{}` is not usable: {why}", path.display())]
    Malformed {
        /// Which file.
        path: PathBuf,
        /// What does not hold.
        why: String,
    },
    /// A file was written by a newer `rare`.
    #[error("`{}` has format {found}, this rare knows up to {known}", path.display())]
    Newer {
        /// Which file.
        path: PathBuf,
        /// Its format.
        found: u32,
        /// The newest that is understood.
        known: u32,
    },
    /// A journal belongs to another run.
    #[error("`{}` belongs to another run: {why}", path.display())]
    OtherRun {
        /// Which journal.
        path: PathBuf,
        /// What differs.
        why: String,
    },
    /// Somebody else holds a lock.
    #[error("{what} is in use by {holder}")]
    Locked {
        /// What is locked.
        what: String,
        /// Who holds it, in words.
        holder: String,
    },
    /// Not enough or no hexadecimal digits.
    #[error("`{prefix}` is not a plan: give 6 to 64 hexadecimal digits of its hash, or `name/hash`")]
    NotAPrefix {
        /// As given.
        prefix: String,
    },
    /// No plan begins with these digits.
    #[error("no plan under `{}` begins with `{prefix}`", reports.display())]
    NoSuchPlan {
        /// As given.
        prefix: String,
        /// Where it was sought.
        reports: PathBuf,
    },
    /// Several plans begin with these digits.
    #[error("`{prefix}` could be any of {}", candidates.join(", "))]
    Ambiguous {
        /// As given.
        prefix: String,
        /// `name/hash` of each, sorted.
        candidates: Vec<String>,
    },
}

impl StoreError {
    /// Returns what the user can do about it.
    pub fn help(&self) -> &'static str {
        match self {
            Self::Io { source, .. } | Self::Append { source, .. } => match source.kind() {
                io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                    "free some space and run the same command again: it continues where this one stopped"
                }
                io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
                    "make the folder writable, or choose another one"
                }
                _ => "what was recorded before is intact; run the same command again when the cause is gone",
            },
            Self::Damaged { record: 0, .. } => {
                "without its header no record of a run can be proven: move the run's folder away, or measure with `--fresh`"
            }
            Self::Damaged { .. } => "`rare verify --repair` keeps the good records and sets the damaged file aside",
            Self::Malformed { .. } => "restore the file from a copy, or move it away and run again",
            Self::Newer { .. } => "use the newer rare that wrote it",
            Self::OtherRun { .. } => "move the run's folder back to where it came from",
            Self::Locked { .. } => "wait until it has ended, or end it",
            Self::NotAPrefix { .. } | Self::NoSuchPlan { .. } => "`rare list` shows every plan",
            Self::Ambiguous { .. } => "give more digits, or `name/hash`",
        }
    }

    /// Returns an adaptor for `map_err`.
    pub(crate) fn io(act: &'static str, path: &Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::Io { act, path, source }
    }
}
