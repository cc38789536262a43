//! No structure touches memory that is not its own, and none leaks what it should free: memcheck over each structure
//! under each scheme. Skipped, and said so in one line, where valgrind is not installed.
//!
//! `RARE_TESTS=long` takes every structure under every scheme, and not a sample.
//!
//! The program runs itself under valgrind with the name of one subject. The controls show that memcheck would notice: it
//! must find the leaks of one to the byte, and the use after free of another.

mod common;
#[path = "../../tests/skip/mod.rs"]
mod skip;

use std::{
    env,
    process::{Command, ExitCode, Output},
    thread,
};

use common::{
    Random, Subject, churn,
    controls::{EXPECTED, Expected, Suite},
    n_threads,
};
use rare_workloads::{
    families::set::SetHandle,
    protocol::Reclamation,
    structures::{Reclaims, controls::leak},
};

/// Exit code of memcheck when it saw an error.
const SEEN: i32 = 99;

fn main() -> ExitCode {
    // What cargo passes on to test harnesses (filters, flags) means nothing here.
    if let Some(name) = env::args().skip_while(|word| word != "exercise").nth(1) {
        return exercise(&name);
    }
    if Command::new("valgrind").arg("--version").output().is_err() {
        skip::skip("valgrind is not installed, so memcheck is not run");
        return ExitCode::SUCCESS;
    }
    let mut n_failed = 0;
    for expected in EXPECTED {
        let name = expected.subject().short_name();
        let output = memcheck(&name, true);
        n_failed += report(&name, is_as_expected(expected, &output), &output);
    }
    for subject in Subject::sample() {
        let leaks = subject.reclamation == Reclamation::None && subject.info.reclaims == Reclaims::Deferred;
        let name = subject.short_name();
        let output = memcheck(&name, !leaks);
        n_failed += report(&name, output.status.success(), &output);
    }
    if n_failed == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

/// Runs this program under memcheck.
fn memcheck(name: &str, with_leaks: bool) -> Output {
    let leak_check = if with_leaks { "--leak-check=full" } else { "--leak-check=no" };
    Command::new("valgrind")
        .args(["--quiet", "--fair-sched=yes", "--errors-for-leak-kinds=definite", "--show-leak-kinds=definite"])
        .args([leak_check, &format!("--error-exitcode={SEEN}")])
        .arg(concat!("--suppressions=", env!("CARGO_MANIFEST_DIR"), "/../src/tools/valgrind.supp"))
        .arg(env::current_exe().expect("the test binary is running"))
        .args(["exercise", name])
        .output()
        .expect("valgrind has just answered")
}

/// Tells whether memcheck said of a control what it must.
fn is_as_expected(expected: &Expected, output: &Output) -> bool {
    let (said, told) = (String::from_utf8_lossy(&output.stderr), String::from_utf8_lossy(&output.stdout));
    if !expected.must_be_caught_by(Suite::Memcheck) {
        return output.status.success();
    }
    let is_seen = output.status.code() == Some(SEEN);
    let (invalid_read, lost) = (said.contains("Invalid read of size 8"), lost(&said));
    match expected.control.info.name {
        "control-use-after-free" => is_seen && invalid_read && lost == (0, 0),
        "control-leak" => {
            let n_leaks: u64 = told.trim().strip_prefix(LEAKS).expect("it tells").parse().expect("a number");
            is_seen && !invalid_read && n_leaks > 10 && lost == (n_leaks * leak::LEAK_BYTES as u64, n_leaks)
        }
        _ => is_seen && !invalid_read && lost.1 > 0,
    }
}

/// Reads bytes and blocks of the definite leaks from what memcheck said; they are listed by where they were allocated.
fn lost(said: &str) -> (u64, u64) {
    let number = |word: &str| word.replace(',', "").parse::<u64>().ok();
    let mut total = (0, 0);
    for line in said.lines().filter(|line| line.contains(" definitely lost in loss record ")) {
        // `==1== 3,072 (96 direct, 2,976 indirect) bytes in 96 blocks are definitely lost in loss record 1 of 1`
        let words: Vec<&str> = line.split_whitespace().collect();
        let blocks_at = words.iter().position(|word| *word == "in").expect("it tells the blocks") + 1;
        total.0 += number(words[1]).expect("it tells the bytes");
        total.1 += number(words[blocks_at]).expect("it tells the blocks");
    }
    total
}

/// Prints one line, and all that memcheck said if it is not as it should be. Returns the number of failures.
fn report(name: &str, is_as_it_should_be: bool, output: &Output) -> u32 {
    let word = if is_as_it_should_be { "ok" } else { "FAILED" };
    println!("memcheck of {name} ... {word}");
    if !is_as_it_should_be {
        println!("{}\n{}", output.status, String::from_utf8_lossy(&output.stderr));
    }
    u32::from(!is_as_it_should_be)
}

/// What the exercise of `control-leak` prints before their number.
const LEAKS: &str = "leaks: ";

/// What runs under memcheck.
fn exercise(name: &str) -> ExitCode {
    let controls = EXPECTED.iter().map(Expected::subject);
    let subject = Subject::all().into_iter().chain(controls).find(|subject| subject.short_name() == name);
    let subject = subject.unwrap_or_else(|| panic!("`{name}` is not registered"));
    let n_leaks: u64 = [3, 50].into_iter().map(|n_keys| churn_on_threads(&subject, n_keys)).sum();
    if std::ptr::eq(subject.info, &leak::CONTROL.info) {
        println!("{LEAKS}{n_leaks}");
    }
    ExitCode::SUCCESS
}

/// Returns how many nodes leak if that is the structure's fault.
fn churn_on_threads(subject: &Subject, n_keys: u64) -> u64 {
    let keys: Vec<u64> = (0..n_keys).collect();
    let dose = EXPECTED.iter().find(|expected| expected.control.info.name == subject.info.name);
    let dose = dose.map_or(&[][..], |expected| expected.dose);
    let mut set = subject.make_with(dose);
    let n_leaks = thread::scope(|scope| {
        let run = |thread: u64| {
            let (set, keys) = (&*set, &*keys);
            move || {
                let mut counted = Counted { handle: set.handle(), n_removed: 0 };
                churn(&mut counted, &mut Random::of(1, thread), keys, 3000);
                counted.n_removed
            }
        };
        let threads: Vec<_> = (0..n_threads()).map(|thread| scope.spawn(run(thread))).collect();
        let removed = threads.into_iter().map(|thread| thread.join().expect("the thread did not panic"));
        // Each thread leaks its own n-th removals.
        let one_in = dose.iter().find(|(name, _)| *name == "one_in").map_or(1, |(_, one_in)| *one_in);
        removed.map(|n_removed| n_removed / one_in).sum()
    });
    assert_eq!(set.audit().violations, Vec::<String>::new(), "{}", subject.name());
    n_leaks
}

/// Counts the removals that answered true.
struct Counted<'s> {
    handle: Box<dyn SetHandle + 's>,
    n_removed: u64,
}

impl SetHandle for Counted<'_> {
    fn insert(&mut self, key: u64, value: u64) -> bool {
        self.handle.insert(key, value)
    }

    fn remove(&mut self, key: u64) -> bool {
        let removed = self.handle.remove(key);
        self.n_removed += u64::from(removed);
        removed
    }

    fn contains(&mut self, key: u64) -> bool {
        self.handle.contains(key)
    }
}
