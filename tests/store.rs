//! The journal and the folders under everything that can happen to them: cuts, flipped bits, full and read-only disks.

#![allow(
    clippy::unwrap_used,
    reason = "a test that cannot set its stage up has failed; helpers are not known as tests"
)]

mod run_support;

use std::{fs, io, path::Path};

use rare::{
    plan::PlanHash,
    store::{
        Header, Journal, PlanFolder, Store, StoreError,
        journal::{self, Torn},
        lock::Holder,
    },
};
use run_support::{Mount, header, record};
use sha2::{Digest, Sha256};

/// Writes a journal of `n` records and returns its bytes.
fn journal_of(path: &Path, n: u32) -> Vec<u8> {
    let (mut journal, _) = Journal::open(path, &header()).unwrap();
    (0..n).for_each(|cell| journal.append(&record(cell)).unwrap());
    fs::read(path).unwrap()
}

/// Returns where each line ends, with its newline.
fn line_ends(bytes: &[u8]) -> Vec<usize> {
    bytes.iter().enumerate().filter(|(_, byte)| **byte == b'\n').map(|(at, _)| at + 1).collect()
}

#[test]
fn a_journal_cut_at_any_byte_loses_at_most_the_torn_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.jsonl");
    let whole = journal_of(&path, 3);
    let ends = line_ends(&whole);
    for cut in 0..=whole.len() {
        fs::write(&path, &whole[..cut]).unwrap();
        let complete = ends.iter().filter(|&&end| end <= cut).count();
        let kept = complete.saturating_sub(1);
        let torn_at = if complete == 0 { 0 } else { ends[complete - 1] };
        let torn = (cut > torn_at).then(|| Torn { offset: torn_at as u64, bytes: (cut - torn_at) as u64 });

        let contents = journal::read(&path).unwrap();
        assert_eq!((contents.trials.len(), contents.torn), (kept, torn), "cut at {cut}");

        let (mut journal, contents) = Journal::open(&path, &header()).unwrap();
        assert_eq!((contents.trials.len(), contents.torn), (kept, torn), "cut at {cut}");
        journal.append(&record(7)).unwrap();
        let contents = journal::read(&path).unwrap();
        let expected: Vec<_> = (0..kept as u32).chain([7]).map(record).collect();
        assert_eq!((contents.trials, contents.torn), (expected, None), "cut at {cut}");
    }
}

#[test]
fn every_flipped_bit_is_noticed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.jsonl");
    let whole = journal_of(&path, 2);
    let mut torn = 0;
    for position in 0..whole.len() * 8 {
        let mut flipped = whole.clone();
        flipped[position / 8] ^= 1 << (position % 8);
        fs::write(&path, &flipped).unwrap();
        match journal::read(&path) {
            Err(_) => {}
            // The last newline gone looks like an interrupted write, and is said as one.
            Ok(contents) => {
                assert!(contents.torn.is_some() && contents.trials == [record(0)], "bit {position}");
                torn += 1;
            }
        }
    }
    assert_eq!(torn, 8, "only the bits of the last newline");
}

#[test]
fn lines_cannot_be_deleted_repeated_moved_or_brought_in() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.jsonl");
    let whole = String::from_utf8(journal_of(&path, 3)).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let foreign = folder.path().join("foreign.jsonl");
    let mut other = header();
    other.run = "20260102T030405Z-other".to_owned();
    Journal::open(&foreign, &other).unwrap().0.append(&record(0)).unwrap();
    let foreign = fs::read_to_string(foreign).unwrap();
    let foreign_line = foreign.split_inclusive('\n').nth(1).unwrap();

    let check = |lines: &[&str], record: u64, expected: &str| {
        fs::write(&path, lines.concat()).unwrap();
        let offset: usize = lines[..record as usize].iter().map(|line| line.len()).sum();
        let error = journal::read(&path).unwrap_err().to_string();
        assert!(error.contains(&format!("damaged at record {record}, byte {offset}: ")), "{error}");
        assert!(error.contains(expected), "`{error}` lacks `{expected}`");
    };
    check(&[lines[0], lines[2], lines[3]], 1, "it is numbered 2");
    check(&[lines[0], lines[1], lines[1], lines[2]], 2, "it is numbered 1");
    check(&[lines[0], lines[2], lines[1], lines[3]], 1, "out of order");
    check(&[lines[0], foreign_line, lines[2], lines[3]], 1, "its digest does not hold");
    check(&[lines[0], "\n", lines[1]], 1, "not a journal line");
    check(&[lines[1], lines[2]], 0, "its digest does not hold");
}

#[test]
fn a_trial_recorded_twice_is_damage() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.jsonl");
    let (mut journal, _) = Journal::open(&path, &header()).unwrap();
    journal.append(&record(0)).unwrap();
    journal.append(&record(0)).unwrap();
    let error = journal::read(&path).unwrap_err().to_string();
    assert!(error.ends_with("trial `measure-0-0` is recorded twice"), "{error}");
}

#[test]
fn repair_keeps_the_good_records_and_the_damaged_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.jsonl");
    let whole = journal_of(&path, 4);
    let ends = line_ends(&whole);
    let mut damaged = whole.clone();
    damaged[ends[1] + 100] ^= 1;
    damaged.truncate(whole.len() - 5);
    fs::write(&path, &damaged).unwrap();
    assert!(matches!(journal::read(&path), Err(StoreError::Damaged { record: 2, .. })));

    let repair = journal::repair(&path).unwrap();
    assert_eq!(repair.kept, 2);
    let lost: Vec<(u64, u64)> = repair.lost.iter().map(|(record, offset, _)| (*record, *offset)).collect();
    assert_eq!(lost, [(2, ends[1] as u64), (4, ends[3] as u64)]);
    assert_eq!(fs::read(repair.damaged.unwrap()).unwrap(), damaged);

    let (mut journal, contents) = Journal::open(&path, &header()).unwrap();
    assert_eq!(contents.trials, [record(0), record(2)]);
    journal.append(&record(1)).unwrap();
    assert_eq!(journal::read(&path).unwrap().trials, [record(0), record(2), record(1)]);
    // A sound journal is left alone.
    assert_eq!(journal::repair(&path).unwrap().damaged, None);
}

#[test]
fn a_newer_or_foreign_journal_is_not_written() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.jsonl");
    let mut newer = header();
    newer.format = 2;
    Journal::open(&path, &newer).unwrap();
    let before = fs::read(&path).unwrap();
    let error = Journal::open(&path, &header()).unwrap_err();
    assert!(matches!(error, StoreError::Newer { found: 2, known: 1, .. }), "{error}");
    assert_eq!(fs::read(&path).unwrap(), before);

    fs::remove_file(&path).unwrap();
    journal_of(&path, 1);
    let mut other = header();
    other.machine = "another".to_owned();
    let error = Journal::open(&path, &other).unwrap_err().to_string();
    assert!(error.ends_with("its machine is `a machine`, not `another`"), "{error}");
}

/// The header of a run of this name.
fn named(run: &str) -> Header {
    Header { run: run.to_owned(), ..header() }
}

/// A plan's folder with one run of one record.
fn plan_folder(reports: &Path, canonical: &[u8], name: &str) -> PlanFolder {
    let hash = PlanHash(Sha256::digest(canonical).into());
    let plan = Store::open(reports).unwrap().create(name, hash, canonical).unwrap();
    plan.write("spec.yaml", b"rare: 1\n").unwrap();
    let run = plan.create_run("20260102T030405Z", "Host.example", named).unwrap();
    run.append(&header()).unwrap().0.append(&record(0)).unwrap();
    plan
}

#[test]
fn plans_are_found_by_unique_prefixes() {
    let folder = tempfile::tempdir().unwrap();
    let reports = folder.path();
    let first = plan_folder(reports, b"{\"a\":1}", "first");
    plan_folder(reports, b"{\"a\":2}", "second");
    plan_folder(reports, b"{\"a\":1}", "copy");
    let store = Store::open(reports).unwrap();
    let short = first.short();
    let full = first.hash().unwrap();

    assert_eq!(store.find(&format!("first/{}", &short[..6])).unwrap(), first);
    assert_eq!(store.find(&format!("first/{full}")).unwrap(), first);
    let check = |prefix: &str, expected: &str| {
        let error = store.find(prefix).unwrap_err().to_string();
        assert!(error.contains(expected), "`{error}` lacks `{expected}`");
    };
    check(&short[..6], &format!("could be any of copy/{short}, first/{short}"));
    check(&full, "could be any of");
    check(&short[..5], "give 6 to 64 hexadecimal digits");
    check("nonsense", "is not a plan");
    check("../../../etc", "is not a plan");
    check("ffffffffffff", "no plan under");
    let mut wrong = full.clone();
    wrong.replace_range(63.., if full.ends_with('0') { "1" } else { "0" });
    check(&wrong, "no plan under");
    // A name is needed only where two share a hash.
    fs::remove_dir_all(reports.join("copy")).unwrap();
    assert_eq!(store.find(&full.to_uppercase()).unwrap(), first);
    assert_eq!(store.plans().unwrap().len(), 2);
}

#[test]
fn verify_notices_what_changed_after_sealing() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan_folder(folder.path(), b"{\"a\":1}", "name");
    let verify = || plan.verify().unwrap();
    assert!(!verify().sealed && verify().faults.is_empty());
    plan.write("figures/a.svg", b"<svg/>").unwrap();
    plan.seal().unwrap();
    let sound = verify();
    assert!(sound.sealed && sound.faults.is_empty(), "{sound:?}");

    let check = |file: &str, content: Option<&[u8]>, expected: &str| {
        let path = plan.path().join(file);
        let before = fs::read(&path).ok();
        match content {
            Some(content) => fs::write(&path, content).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        let faults = verify().faults;
        assert!(faults.iter().any(|(at, fault)| at == file && fault.contains(expected)), "{file}: {faults:?}");
        match before {
            Some(before) => fs::write(&path, before).unwrap(),
            None => fs::remove_file(&path).unwrap(),
        }
        assert!(verify().faults.is_empty());
    };
    check("figures/a.svg", Some(b"<svg />"), "its digest does not hold (7 bytes, 6 when sealed)");
    check("figures/a.svg", None, "it is missing");
    check("stray.txt", Some(b""), "it is not in the manifest");
    check("plan.json", Some(b"{\"a\":2}"), "it hashes to");
    check("manifest.json", Some(b"{\"format\":2,\"files\":[]}"), "has format 2, this rare knows up to 1");
    let journal = "runs/20260102T030405Z-host-example/trials.jsonl";
    let whole = fs::read(plan.path().join(journal)).unwrap();
    check(journal, Some(&whole[..whole.len() - 1]), "its digest does not hold");
    let mut flipped = whole.clone();
    flipped[20] ^= 1;
    check(journal, Some(&flipped), "damaged at record 0, byte 0");
    // A whole line missing at the end is what only the manifest can tell.
    let header_end = line_ends(&whole)[0];
    check(journal, Some(&whole[..header_end]), "its digest does not hold");
}

#[test]
fn runs_of_one_second_get_their_own_folders() {
    let folder = tempfile::tempdir().unwrap();
    let plan = plan_folder(folder.path(), b"{}", "name");
    plan.create_run("20260102T030405Z", "Host.example", named).unwrap();
    let ids: Vec<String> = plan.runs().unwrap().iter().map(|run| run.id().to_owned()).collect();
    assert_eq!(ids, ["20260102T030405Z-host-example", "20260102T030405Z-host-example-2"]);
}

#[test]
fn a_full_disk_stops_the_journal_and_damages_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let Some(_mount) = Mount::tmpfs(folder.path(), "size=64k") else { return };
    let plan = plan_folder(folder.path(), b"{}", "name");
    let run = plan.runs().unwrap().remove(0);
    let (mut journal, contents) = run.append(&header()).unwrap();
    let mut acknowledged = contents.trials;
    let error = loop {
        let next = record(acknowledged.len() as u32);
        match journal.append(&next) {
            Ok(()) => acknowledged.push(next),
            Err(error) => break error,
        }
        assert!(acknowledged.len() < 1000, "64 kB are not full after 1000 records");
    };
    assert!(error.to_string().starts_with("cannot append record of trial `measure-"), "{error}");
    assert!(error.help().starts_with("free some space"), "{}", error.help());
    let StoreError::Append { source, .. } = error else { panic!("{error}") };
    assert_eq!(source.kind(), io::ErrorKind::StorageFull);
    assert!(journal.append(&record(0)).is_err(), "a failed journal takes no more");

    let contents = run.read().unwrap();
    assert_eq!((contents.trials.len(), contents.torn), (acknowledged.len(), None));
    assert_eq!(plan.verify().unwrap().faults, []);
    let error = plan.write("report.md", &[b'x'; 100_000]).unwrap_err();
    assert!(error.help().starts_with("free some space"), "{error}");
    assert!(!plan.path().join("report.md").exists(), "half a report is no report");
    assert_eq!(plan.verify().unwrap().faults, []);
}

#[test]
fn a_read_only_folder_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let Some(mount) = Mount::tmpfs(folder.path(), "size=1m") else { return };
    let plan = plan_folder(folder.path(), b"{}", "name");
    let run = plan.runs().unwrap().remove(0);
    mount.read_only();
    let check = |error: StoreError, expected: &str| {
        assert!(error.to_string().starts_with(expected), "{error}");
        assert!(error.help().starts_with("make the folder writable"), "{}", error.help());
    };
    check(plan.write("report.md", b"").unwrap_err(), "cannot create `");
    check(run.append(&header()).unwrap_err(), "cannot open `");
    check(plan.create_run("20260102T030406Z", "host", named).unwrap_err(), "cannot create `");
    let holder = Holder::this_process("rare", "0123456789ab", "now");
    check(plan.lock(&holder).unwrap_err(), "cannot open the lock `");
    assert_eq!(plan.verify().unwrap().faults, []);
    assert_eq!(run.read().unwrap().trials, [record(0)]);
}

#[test]
fn a_device_in_place_of_a_file_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("trials.jsonl");
    // Reading it would never end.
    std::os::unix::fs::symlink("/dev/full", &path).unwrap();
    let error = Journal::open(&path, &header()).unwrap_err().to_string();
    assert!(error.ends_with("is not usable: it is not a regular file"), "{error}");
}
