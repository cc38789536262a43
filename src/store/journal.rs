//! The journal of a run: append-only, one proven record a line, durable before a trial counts.
//!
//! The first line is the [`Header`]. A last line without its newline is what an interrupted write leaves: it is dropped
//! and said. Anything else that does not hold is damage, and nothing is read past it except by [`repair`].

use std::{
    collections::BTreeSet,
    fs::{File, OpenOptions},
    io::{self, Seek, SeekFrom, Write},
    path::{Path, PathBuf},
};

use serde::{Deserialize, Serialize};

use super::{StoreError, line, whole};
use crate::record::Trial;

/// Version of the journal's format.
pub const FORMAT: u32 = 1;

/// Whose journal it is. Trials of another worker or machine must not come into it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Header {
    /// Format version, [`FORMAT`].
    pub format: u32,
    /// Full plan hash, 64 hexadecimal digits.
    pub plan: String,
    /// Name of the run's folder.
    pub run: String,
    /// SHA-256 of the worker's binary, 64 hexadecimal digits.
    pub worker_sha256: String,
    /// What identifies the machine, as the caller tells it; compared for equality only.
    pub machine: String,
}

/// What a journal holds.
#[derive(Clone, Debug, PartialEq)]
pub struct Contents {
    /// `None` only when the file ends within its first line.
    pub header: Option<Header>,
    /// Records in the order in which they were made.
    pub trials: Vec<Trial>,
    /// An incomplete last line, dropped. It was never acknowledged.
    pub torn: Option<Torn>,
}

/// An incomplete last line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Torn {
    /// Where it begins.
    pub offset: u64,
    /// Its length, at least 1.
    pub bytes: u64,
}

/// A journal open for appending. The caller holds the lock of the plan's folder.
#[derive(Debug)]
pub struct Journal {
    path: PathBuf,
    file: File,
    salt: String,
    /// Number of the next line.
    seq: u64,
    /// Length of everything acknowledged.
    length: u64,
    /// Set when a failed append could leave something behind; nothing more may follow.
    broken: bool,
}

impl Journal {
    /// Opens the journal at `path` for appending, or creates it.
    ///
    /// A torn last line is cut off, and told in the contents.
    ///
    /// # Errors
    /// [`StoreError::Damaged`], [`StoreError::Newer`], [`StoreError::OtherRun`] when the header differs from `header`,
    /// [`StoreError::Io`].
    pub fn open(path: &Path, header: &Header) -> Result<(Self, Contents), StoreError> {
        let (header_line, salt) = render_header(header);
        let exists = path.try_exists().map_err(StoreError::io("look for", path))?;
        let mut contents = if exists { read(path)? } else { Contents { header: None, trials: Vec::new(), torn: None } };
        match &contents.header {
            // The header appears whole, so that a journal without one holds nothing.
            None => whole::write(path, header_line.as_bytes())?,
            Some(found) if found != header => return Err(other_run(path, found, header)),
            Some(_) => {}
        }
        contents.header = Some(header.clone());
        let file = OpenOptions::new().write(true).open(path).map_err(StoreError::io("open", path))?;
        let length = match contents.torn {
            Some(torn) if torn.offset > 0 => torn.offset,
            _ => file.metadata().map_err(StoreError::io("read the length of", path))?.len(),
        };
        let seq = contents.trials.len() as u64 + 1;
        let mut journal = Self { path: path.to_owned(), file, salt, seq, length, broken: false };
        journal.cut().map_err(StoreError::io("cut the torn line off", path))?;
        Ok((journal, contents))
    }

    /// Appends a record. When this returns, the record is on the disk and the trial counts.
    ///
    /// # Errors
    /// [`StoreError::Append`]: the trial does not count, and the journal takes no more.
    pub fn append(&mut self, trial: &Trial) -> Result<(), StoreError> {
        let record = serde_json::to_string(trial).expect("a record is plain data");
        let (line, _) = line::render(&self.salt, self.seq, &record);
        self.append_line(line.as_bytes()).map_err(|source| StoreError::Append {
            trial: trial.trial,
            path: self.path.clone(),
            source,
        })
    }

    /// Writes and syncs one line; on failure takes back what was written, as far as the disk lets it.
    fn append_line(&mut self, line: &[u8]) -> io::Result<()> {
        if self.broken {
            return Err(io::Error::other("an earlier record could not be written"));
        }
        let written = self.file.write_all(line).and_then(|()| self.file.sync_data());
        if written.is_err() {
            self.broken = true;
            // A cut that fails leaves a torn line, or a whole line that was not acknowledged; both read well.
            let _ = self.cut();
            return written;
        }
        self.seq += 1;
        self.length += line.len() as u64;
        Ok(())
    }

    /// Makes the file end after the last acknowledged line.
    fn cut(&mut self) -> io::Result<()> {
        self.file.set_len(self.length)?;
        self.file.seek(SeekFrom::Start(self.length))?;
        self.file.sync_data()
    }
}

/// Writes a journal without records, whole.
///
/// # Errors
/// [`StoreError::Io`].
pub(super) fn create(path: &Path, header: &Header) -> Result<(), StoreError> {
    whole::write(path, render_header(header).0.as_bytes())
}

/// Returns the header's line and its digest, the salt of all other lines.
fn render_header(header: &Header) -> (String, String) {
    line::render("", 0, &serde_json::to_string(header).expect("a header is plain data"))
}

/// Reads a journal.
///
/// # Errors
/// [`StoreError::Damaged`] at the first record that does not hold, [`StoreError::Newer`], [`StoreError::Io`].
pub fn read(path: &Path) -> Result<Contents, StoreError> {
    parse(path, &whole::read(path)?)
}

/// Reads only the header: whose journal it is. `None` when the file ends within its first line.
///
/// # Errors
/// As [`read`].
pub fn read_header(path: &Path) -> Result<Option<Header>, StoreError> {
    let bytes = whole::read(path)?;
    lines(&bytes).0.first().map(|(_, line)| header_of(path, line).map(|(header, _)| header)).transpose()
}

/// Reads a journal from its bytes; `path` is for messages.
fn parse(path: &Path, bytes: &[u8]) -> Result<Contents, StoreError> {
    let (lines, torn) = lines(bytes);
    let mut lines = lines.into_iter();
    let Some((_, first)) = lines.next() else {
        return Ok(Contents { header: None, trials: Vec::new(), torn });
    };
    let (header, salt) = header_of(path, first)?;
    let mut trials = Vec::new();
    let mut seen = BTreeSet::new();
    for (record, (offset, line)) in (1..).zip(lines) {
        let damaged = |why| StoreError::Damaged { path: path.to_owned(), record, offset, why };
        let (line, trial) = trial_of(&salt, line).map_err(damaged)?;
        if line.seq != record {
            return Err(damaged(format!("it is numbered {}: lines are missing, repeated or out of order", line.seq)));
        }
        if !seen.insert((trial.trial, trial.attempt)) {
            return Err(damaged(format!("trial `{}` is recorded twice", trial.trial)));
        }
        trials.push(trial);
    }
    Ok(Contents { header: Some(header), trials, torn })
}

/// Splits into complete lines with their offsets, and the torn rest.
fn lines(bytes: &[u8]) -> (Vec<(u64, &[u8])>, Option<Torn>) {
    let mut lines = Vec::new();
    let mut offset = 0;
    for line in bytes.split_inclusive(|&byte| byte == b'\n') {
        match line.strip_suffix(b"\n") {
            Some(complete) => lines.push((offset, complete)),
            None => return (lines, Some(Torn { offset, bytes: line.len() as u64 })),
        }
        offset += line.len() as u64;
    }
    (lines, None)
}

/// Reads the header's line. Returns it with its digest, the salt of all other lines.
fn header_of(path: &Path, line: &[u8]) -> Result<(Header, String), StoreError> {
    /// The one field that every version has.
    #[derive(Deserialize)]
    struct Versioned {
        format: u32,
    }

    let damaged = |why| StoreError::Damaged { path: path.to_owned(), record: 0, offset: 0, why };
    let line = line::parse("", line).map_err(damaged)?;
    let record = line.record.get();
    if line.seq != 0 {
        return Err(damaged(format!("the header is numbered {}", line.seq)));
    }
    match serde_json::from_str::<Versioned>(record) {
        Ok(versioned) if versioned.format > FORMAT => {
            return Err(StoreError::Newer { path: path.to_owned(), found: versioned.format, known: FORMAT });
        }
        _ => {}
    }
    let header = serde_json::from_str(record).map_err(|error| damaged(format!("it is not a header: {error}")))?;
    Ok((header, line.sha256.to_owned()))
}

/// Reads a record's line.
fn trial_of<'j>(salt: &str, line: &'j [u8]) -> Result<(line::Line<'j>, Trial), String> {
    let line = line::parse(salt, line)?;
    let trial =
        serde_json::from_str(line.record.get()).map_err(|error| format!("its record is not a trial: {error}"))?;
    Ok((line, trial))
}

/// What [`repair`] did.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Repair {
    /// Records kept.
    pub kept: u64,
    /// Line number, offset and fault of each line that was given up.
    pub lost: Vec<(u64, u64, String)>,
    /// Where the damaged file lies now; `None` when nothing was wrong and nothing was done.
    pub damaged: Option<PathBuf>,
}

/// Keeps the good records of a damaged journal: they are numbered anew in a new file, and the damaged one is set aside
/// as `….damaged`. The caller holds the lock of the plan's folder.
///
/// # Errors
/// [`StoreError::Damaged`] when the header itself is damaged: without it no record can be proven, and the file is left
/// alone. [`StoreError::Newer`], [`StoreError::Io`].
pub fn repair(path: &Path) -> Result<Repair, StoreError> {
    let bytes = whole::read(path)?;
    if let Ok(Contents { trials, torn: None, header: Some(_) }) = parse(path, &bytes) {
        return Ok(Repair { kept: trials.len() as u64, lost: Vec::new(), damaged: None });
    }
    let (lines, torn) = lines(&bytes);
    let n_lines = lines.len() as u64;
    let mut lines = (0..).zip(lines);
    let Some((_, (_, first))) = lines.next() else {
        let why = "it ends within its header".to_owned();
        return Err(StoreError::Damaged { path: path.to_owned(), record: 0, offset: 0, why });
    };
    let (_, salt) = header_of(path, first)?;
    let mut good = [first, b"\n"].concat();
    let mut repair = Repair { kept: 0, lost: Vec::new(), damaged: None };
    let mut seen = BTreeSet::new();
    for (record, (offset, line)) in lines {
        match trial_of(&salt, line) {
            Ok((line, trial)) if seen.insert((trial.trial, trial.attempt)) => {
                repair.kept += 1;
                good.extend(line::render(&salt, repair.kept, line.record.get()).0.into_bytes());
            }
            Ok((_, trial)) => repair.lost.push((record, offset, format!("trial `{}` again", trial.trial))),
            Err(why) => repair.lost.push((record, offset, why)),
        }
    }
    repair.lost.extend(torn.map(|torn| (n_lines, torn.offset, "it is incomplete".to_owned())));
    let aside = free_name(path)?;
    whole::write(&aside, &bytes)?;
    whole::write(path, &good)?;
    repair.damaged = Some(aside);
    Ok(repair)
}

/// Returns `<path>.damaged`, or with the first free number: a second repair must not overwrite the first one's.
fn free_name(path: &Path) -> Result<PathBuf, StoreError> {
    for n in 1.. {
        let suffix = if n == 1 { "damaged".to_owned() } else { format!("damaged-{n}") };
        let candidate = path.with_extension(format!("jsonl.{suffix}"));
        if !candidate.try_exists().map_err(StoreError::io("look for", &candidate))? {
            return Ok(candidate);
        }
    }
    unreachable!("a folder has fewer names than there are numbers")
}

/// Says in what two headers differ.
fn other_run(path: &Path, found: &Header, expected: &Header) -> StoreError {
    let fields = [
        ("plan", &found.plan, &expected.plan),
        ("run", &found.run, &expected.run),
        ("worker", &found.worker_sha256, &expected.worker_sha256),
        ("machine", &found.machine, &expected.machine),
    ];
    let why = fields
        .into_iter()
        .find(|(_, found, expected)| found != expected)
        .map(|(name, found, expected)| format!("its {name} is `{found}`, not `{expected}`"))
        .unwrap_or_else(|| format!("its format is {}, not {}", found.format, expected.format));
    StoreError::OtherRun { path: path.to_owned(), why }
}
