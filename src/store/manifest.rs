//! `manifest.json`: what a finished folder holds, by digest; and the check of a whole folder.

use std::{collections::BTreeMap, path::Path};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use super::{PlanFolder, StoreError, line::hex, whole};

/// Version of the manifest's format.
const FORMAT: u32 = 1;

/// The manifest's own name.
const NAME: &str = "manifest.json";

/// Every file of a folder but the manifest itself and hidden ones.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: u32,
    /// Sorted by path.
    files: Vec<Entry>,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    /// Relative to the folder, with `/`.
    path: String,
    /// SHA-256, 64 hexadecimal digits.
    sha256: String,
    /// Size.
    bytes: u64,
}

/// What [`PlanFolder::verify`] found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Verification {
    /// Whether there is a manifest. Without one the plan and the journals are still proven by themselves.
    pub sealed: bool,
    /// Files proven.
    pub n_proven: usize,
    /// What does not hold: file, relative to the folder, and fault.
    pub faults: Vec<(String, String)>,
    /// What is no fault but worth saying, such as a torn last line.
    pub notices: Vec<(String, String)>,
}

/// Writes the manifest of a folder.
pub(super) fn seal(folder: &Path) -> Result<(), StoreError> {
    let mut files = Vec::new();
    for path in walk(folder)? {
        let content = whole::read(&folder.join(&path))?;
        files.push(Entry { path, sha256: hex(&Sha256::digest(&content)), bytes: content.len() as u64 });
    }
    let mut text = serde_json::to_vec_pretty(&Manifest { format: FORMAT, files }).expect("a manifest is plain data");
    text.push(b'\n');
    whole::write(&folder.join(NAME), &text)
}

/// Removes the manifest of a folder, durably.
pub(super) fn unseal(folder: &Path) -> Result<(), StoreError> {
    let path = folder.join(NAME);
    if path.exists() {
        whole::remove(&path)?;
        whole::sync_folder(folder)?;
    }
    Ok(())
}

/// Checks a plan's folder.
pub(super) fn verify(plan: &PlanFolder) -> Result<Verification, StoreError> {
    let mut verification = Verification::default();
    let present = walk(plan.path())?;
    match plan.plan() {
        Ok(_) => verification.n_proven += 1,
        Err(error) => verification.faults.push(("plan.json".to_owned(), full(&error))),
    }
    for run in plan.runs()? {
        let path = format!("runs/{}/trials.jsonl", run.id());
        if !run.journal_path().exists() {
            verification.faults.push((path, "it is missing".to_owned()));
            continue;
        }
        match run.read() {
            Ok(contents) => {
                verification.n_proven += 1;
                if let Some(header) = contents.header.filter(|header| header.run != run.id()) {
                    verification.faults.push((path.clone(), format!("it is the journal of run `{}`", header.run)));
                }
                if let Some(torn) = contents.torn {
                    let notice = format!("the last line is incomplete: {} bytes at byte {}", torn.bytes, torn.offset);
                    verification.notices.push((path, notice));
                }
            }
            Err(error) => verification.faults.push((path, full(&error))),
        }
        if let Err(error) = run.environment() {
            verification.faults.push((format!("runs/{}/environment.json", run.id()), full(&error)));
        }
    }
    let path = plan.path().join(NAME);
    if path.exists() {
        verification.sealed = true;
        match load(&path) {
            Ok(manifest) => compare(plan.path(), &manifest, &present, &mut verification),
            Err(error) => verification.faults.push((NAME.to_owned(), full(&error))),
        }
    }
    Ok(verification)
}

/// Compares a folder with its manifest.
fn compare(folder: &Path, manifest: &Manifest, present: &[String], verification: &mut Verification) {
    let mut expected: BTreeMap<&str, &Entry> = manifest.files.iter().map(|entry| (&*entry.path, entry)).collect();
    for path in present {
        let Some(entry) = expected.remove(&**path) else {
            verification.faults.push((path.clone(), "it is not in the manifest".to_owned()));
            continue;
        };
        match whole::read(&folder.join(path)) {
            Ok(content) if hex(&Sha256::digest(&content)) == entry.sha256 => verification.n_proven += 1,
            Ok(content) => {
                let fault = format!("its digest does not hold ({} bytes, {} when sealed)", content.len(), entry.bytes);
                verification.faults.push((path.clone(), fault));
            }
            Err(error) => verification.faults.push((path.clone(), full(&error))),
        }
    }
    for path in expected.into_keys() {
        verification.faults.push((path.to_owned(), "it is missing".to_owned()));
    }
}

fn load(path: &Path) -> Result<Manifest, StoreError> {
    let manifest: Manifest = serde_json::from_slice(&whole::read(path)?)
        .map_err(|error| StoreError::Malformed { path: path.to_owned(), why: error.to_string() })?;
    if manifest.format > FORMAT {
        return Err(StoreError::Newer { path: path.to_owned(), found: manifest.format, known: FORMAT });
    }
    Ok(manifest)
}

/// Lists the files of a folder and its subfolders, relative and sorted, without the manifest and hidden ones.
fn walk(folder: &Path) -> Result<Vec<String>, StoreError> {
    let mut files = Vec::new();
    let mut pending = vec![String::new()];
    while let Some(prefix) = pending.pop() {
        for name in whole::names(&folder.join(&prefix))? {
            let path = format!("{prefix}{name}");
            if name.starts_with('.') || path == NAME {
                continue;
            }
            if folder.join(&path).is_dir() {
                pending.push(format!("{path}/"));
            } else {
                files.push(path);
            }
        }
    }
    files.sort();
    Ok(files)
}

/// Returns an error with its cause in one line.
fn full(error: &StoreError) -> String {
    match std::error::Error::source(error) {
        Some(source) => format!("{error}: {source}"),
        None => error.to_string(),
    }
}
