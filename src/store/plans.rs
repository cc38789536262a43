//! The folders of plans: `reports/<name>/<plan12>/`.

use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use super::{Header, Lock, RunFolder, StoreError, line::hex, lock::Holder, manifest, runs, whole};
use crate::plan::PlanHash;

/// Hexadecimal digits of the hash in a folder's name.
const FOLDER_DIGITS: usize = 12;

/// Fewest digits by which a plan may be called: fewer would change their meaning too often as plans come.
const PREFIX_DIGITS: usize = 6;

/// All plans under one folder of reports.
#[derive(Clone, Debug)]
pub struct Store {
    reports: PathBuf,
}

impl Store {
    /// Opens the store in the folder `reports`, which need not exist yet.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] when something else than a folder has that name.
    pub fn open(reports: &Path) -> Result<Self, StoreError> {
        if reports.exists() && !reports.is_dir() {
            return Err(StoreError::Malformed { path: reports.to_owned(), why: "it is not a folder".to_owned() });
        }
        Ok(Self { reports: reports.to_owned() })
    }

    /// Lists every plan, sorted by name and hash.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn plans(&self) -> Result<Vec<PlanFolder>, StoreError> {
        let mut plans = Vec::new();
        for name in whole::names(&self.reports)? {
            let folder = self.reports.join(&name);
            if name.starts_with('.') || !folder.is_dir() {
                continue;
            }
            for short in whole::names(&folder)? {
                let path = folder.join(&short);
                if is_hex(&short) && short.len() == FOLDER_DIGITS && path.join("plan.json").is_file() {
                    plans.push(PlanFolder { path, name: name.clone(), short });
                }
            }
        }
        Ok(plans)
    }

    /// Finds the one plan whose hash begins with `prefix`, which may also be `name/hash`.
    ///
    /// # Errors
    /// [`StoreError::NotAPrefix`], [`StoreError::NoSuchPlan`], [`StoreError::Ambiguous`]; [`StoreError::Io`].
    pub fn find(&self, prefix: &str) -> Result<PlanFolder, StoreError> {
        let (name, digits) = match prefix.rsplit_once('/') {
            Some((name, digits)) => (Some(name), digits.to_ascii_lowercase()),
            None => (None, prefix.to_ascii_lowercase()),
        };
        if !is_hex(&digits) || !(PREFIX_DIGITS..=64).contains(&digits.len()) {
            return Err(StoreError::NotAPrefix { prefix: prefix.to_owned() });
        }
        let mut found = Vec::new();
        for plan in self.plans()? {
            if name.is_none_or(|name| name == plan.name) && plan.begins_with(&digits)? {
                found.push(plan);
            }
        }
        match found.len() {
            0 => Err(StoreError::NoSuchPlan { prefix: prefix.to_owned(), reports: self.reports.clone() }),
            1 => Ok(found.remove(0)),
            _ => {
                let candidates = found.iter().map(|plan| format!("{}/{}", plan.name, plan.short)).collect();
                Err(StoreError::Ambiguous { prefix: prefix.to_owned(), candidates })
            }
        }
    }

    /// Returns the folder of a plan, creating it if it is not there.
    ///
    /// `name` is file-safe, `canonical` are the plan's canonical bytes, whose hash is `hash`.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] when the folder holds another plan; [`StoreError::Io`].
    pub fn create(&self, name: &str, hash: PlanHash, canonical: &[u8]) -> Result<PlanFolder, StoreError> {
        let short = hash.short();
        let folder = PlanFolder { path: self.reports.join(name).join(&short), name: name.to_owned(), short };
        let plan_path = folder.path.join("plan.json");
        if plan_path.exists() {
            if folder.hash()? != hash.to_string() {
                let why = format!("it holds another plan than {hash}");
                return Err(StoreError::Malformed { path: plan_path, why });
            }
            return Ok(folder);
        }
        whole::create_folder(&folder.path)?;
        whole::write(&plan_path, canonical)?;
        Ok(folder)
    }
}

fn is_hex(text: &str) -> bool {
    text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
}

/// One plan with its runs and its report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PlanFolder {
    path: PathBuf,
    name: String,
    short: String,
}

impl PlanFolder {
    /// Returns where it is.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Returns the name of the experiment.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Returns the first 12 digits of the plan's hash.
    pub fn short(&self) -> &str {
        &self.short
    }

    /// Takes the folder's lock. Everything below that writes must be done under it.
    ///
    /// # Errors
    /// [`StoreError::Locked`] naming the holder; [`StoreError::Io`].
    pub fn lock(&self, holder: &Holder) -> Result<Lock, StoreError> {
        Lock::folder(&self.path, holder)
    }

    /// Reads the plan's canonical bytes, proven against the folder's name.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] when they hash to something else; [`StoreError::Io`].
    pub fn plan(&self) -> Result<Vec<u8>, StoreError> {
        let path = self.path.join("plan.json");
        let bytes = whole::read(&path)?;
        let hash = hex(&Sha256::digest(&bytes));
        if hash.starts_with(&self.short) {
            return Ok(bytes);
        }
        let why = format!("it hashes to {}, not to {}", &hash[..FOLDER_DIGITS], self.short);
        Err(StoreError::Malformed { path, why })
    }

    /// Returns the full hash of the plan.
    ///
    /// # Errors
    /// As [`PlanFolder::plan`].
    pub fn hash(&self) -> Result<String, StoreError> {
        self.plan().map(|bytes| hex(&Sha256::digest(bytes)))
    }

    /// Reads the text of the spec that lies beside the plan; `None` after a rerun from a bare plan.
    ///
    /// # Errors
    /// [`StoreError::Malformed`] when it is not UTF-8; [`StoreError::Io`].
    pub fn spec(&self) -> Result<Option<String>, StoreError> {
        let path = self.path.join("spec.yaml");
        if !path.exists() {
            return Ok(None);
        }
        let malformed =
            |error: std::string::FromUtf8Error| StoreError::Malformed { path: path.clone(), why: error.to_string() };
        String::from_utf8(whole::read(&path)?).map(Some).map_err(malformed)
    }

    /// Tells whether the hash begins with these digits, which may be more than the folder's name shows.
    fn begins_with(&self, digits: &str) -> Result<bool, StoreError> {
        if digits.len() <= FOLDER_DIGITS {
            return Ok(self.short.starts_with(digits));
        }
        // A damaged plan is found by its name; reading it then tells what is wrong.
        Ok(digits.starts_with(&self.short) && self.hash().map_or(true, |hash| hash.starts_with(digits)))
    }

    /// Writes a file of the folder whole, such as `report.md` or `figures/throughput.svg`.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn write(&self, relative: &str, content: &[u8]) -> Result<(), StoreError> {
        let path = self.path.join(relative);
        whole::create_folder(path.parent().expect("it lies in the plan's folder"))?;
        whole::write(&path, content)
    }

    /// Lists the runs, oldest first.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn runs(&self) -> Result<Vec<RunFolder>, StoreError> {
        runs::list(&self.path)
    }

    /// Creates a new run that began at `utc` (such as `20260102T030405Z`) on `host`, with an empty journal. `header` is
    /// given the run's name.
    ///
    /// # Errors
    /// [`StoreError::Io`]; there is no half-made run then.
    pub fn create_run(
        &self,
        utc: &str,
        host: &str,
        header: impl FnOnce(&str) -> Header,
    ) -> Result<RunFolder, StoreError> {
        runs::create(&self.path, utc, host, header)
    }

    /// Copies a run of the same plan from another folder, whose lock the caller holds too.
    ///
    /// # Errors
    /// [`StoreError::Io`]; there is no half-made run then.
    pub fn adopt(&self, run: &RunFolder) -> Result<RunFolder, StoreError> {
        runs::adopt(&self.path, run)
    }

    /// Writes `manifest.json` over all files. Call it last.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn seal(&self) -> Result<(), StoreError> {
        manifest::seal(&self.path)
    }

    /// Removes `manifest.json`. Call it before changing anything, so that no manifest vouches for what has changed.
    ///
    /// # Errors
    /// [`StoreError::Io`].
    pub fn unseal(&self) -> Result<(), StoreError> {
        manifest::unseal(&self.path)
    }

    /// Checks everything: the plan against the folder's name, every journal, every digest of the manifest.
    ///
    /// # Errors
    /// [`StoreError::Io`] only when the folder cannot be listed; whatever is wrong with files is in the result.
    pub fn verify(&self) -> Result<manifest::Verification, StoreError> {
        manifest::verify(self)
    }
}
