//! No structure touches memory that is not its own, and none leaks what it should free: memcheck over each structure
//! under each scheme. Skipped, and said so in one line, where valgrind is not installed.
//!
//! The program runs itself under valgrind with the name of one subject. Two specimens, a leak and a use after free, show
//! that memcheck would notice.

mod common;
#[path = "../../tests/skip/mod.rs"]
mod skip;

use std::{
    env, hint, mem,
    process::{Command, ExitCode, Output},
    thread,
};

use common::{Random, Subject, churn, n_threads};
use rare_workloads::{protocol::Reclamation, structures::Reclaims};

/// Exit code of memcheck when it saw an error.
const SEEN: i32 = 99;

const SPECIMENS: [&str; 2] = ["specimen-leak", "specimen-use-after-free"];

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
    for name in SPECIMENS {
        let output = memcheck(name, true);
        n_failed += report(name, output.status.code() == Some(SEEN), &output);
    }
    for subject in Subject::all() {
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
        .arg(concat!("--suppressions=", env!("CARGO_MANIFEST_DIR"), "/valgrind.supp"))
        .arg(env::current_exe().expect("the test binary is running"))
        .args(["exercise", name])
        .output()
        .expect("valgrind has just answered")
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

/// What runs under memcheck.
fn exercise(name: &str) -> ExitCode {
    match name {
        "specimen-leak" => leak(),
        "specimen-use-after-free" => use_after_free(),
        _ => {
            let subject = Subject::all().into_iter().find(|subject| subject.short_name() == name);
            let subject = subject.unwrap_or_else(|| panic!("`{name}` is not registered"));
            for n_keys in [3, 50] {
                churn_on_threads(&subject, n_keys);
            }
        }
    }
    ExitCode::SUCCESS
}

fn leak() {
    // On a thread that ends, so that no register or stale stack word still points to the block.
    let thread = thread::spawn(|| mem::forget(hint::black_box(Box::new([7_u64; 100]))));
    thread.join().expect("the thread did not panic");
}

fn use_after_free() {
    let node = Box::into_raw(Box::new(7_u64));
    // SAFETY: the pointer came from `Box::into_raw` just now.
    drop(unsafe { Box::from_raw(hint::black_box(node)) });
    // SAFETY: none, this is the specimen: it reads freed memory so that memcheck has something to see. The process runs
    // only under memcheck, whose allocator does not reuse or unmap the block at once.
    hint::black_box(unsafe { node.read_volatile() });
}

fn churn_on_threads(subject: &Subject, n_keys: u64) {
    let keys: Vec<u64> = (0..n_keys).collect();
    let mut set = subject.make();
    thread::scope(|scope| {
        for thread in 0..n_threads() {
            let (set, keys) = (&*set, &*keys);
            scope.spawn(move || churn(&mut *set.handle(), &mut Random::of(1, thread), keys, 3000));
        }
    });
    assert_eq!(set.audit().violations, Vec::<String>::new(), "{}", subject.name());
}
