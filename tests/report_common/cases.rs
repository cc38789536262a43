//! Runs that never happened, each with something to watch: hostile names, faults, size.

#![allow(clippy::unwrap_used, reason = "a test that meets the unexpected must stop")]

use rare::{
    plan::BlockKind,
    record::{FailureClass, Outcome, Reading},
    spec::value::{Parameter, Value},
};

use super::{Case, SMALL, Shape, USUAL};

/// A name that tries everything.
pub const HOSTILE: &str = "<script>alert('x')</script>|a`b``c\u{202e}gnp.exe\u{200f}\n## heading\n| --- |\n</td></table>{{ 7*7 }}**_~[x](javascript:1)&amp;";

/// A run in which every text that comes from outside is hostile.
pub fn hostile() -> Case {
    let mut case = named(HOSTILE);
    case.spec.question = Some(format!(
        "# {HOSTILE}\n\n<img src=x onerror=alert(1)>\n\n![remote](https://example.com/a.png)\n\n<script>\nalert(1)\n</script>\n\n```\nx\n"
    ));
    case
}

/// A run in which every text that comes from outside holds `name`.
pub fn named(name: &str) -> Case {
    let mut case = Case::new(&SMALL);
    let long = format!("{name}{}", "x".repeat(300));
    for value in case.plan.values[Parameter::Structure as usize].iter_mut().chain(&mut case.spec.axes[0]) {
        let Value::Structure(structure) = value else { unreachable!("the column of structures") };
        structure.label = format!("{}{long}", structure.name);
    }
    case.spec.mix_names[0].1 = long.clone();
    case.spec.question = None;
    case.spec_text = format!("name: x\n# {long}\n```\n</script>\n");
    let left = format!("nm14{long}");
    let right = format!("mutex-btree{long}");
    case.claim(&left, &right, 0, Vec::new());
    for snapshot in [Some(&mut case.environment.before), case.environment.after.as_mut()].into_iter().flatten() {
        for entry in &mut snapshot.entries {
            entry.source = name.to_owned();
            match &mut entry.reading {
                Reading::Value(text) | Reading::Unreadable(text) => text.push_str(name),
            }
        }
        snapshot.entries[0].key = format!("machine.{name}");
    }
    if let Outcome::Replied(reply) = &mut case.trials[1].outcome {
        reply.allocator.version = name.to_owned();
        reply.allocator.evidence = name.to_owned();
        reply.audit_after.violations.push(name.to_owned());
    }
    case.trials[0].outcome = Outcome::Failed {
        class: FailureClass::Signal,
        detail: name.to_owned(),
        stderr: format!("{name}\n```\n</code></pre>{}", "y".repeat(5000)),
    };
    case.plan.checks.push(name.to_owned());
    case
}

/// A run in which much went wrong.
pub fn bad() -> Case {
    let mut case = Case::new(&USUAL);
    case.reply(BlockKind::Measure).audit_after.size += 3;
    let failed = |class, detail: &str, stderr: &str| Outcome::Failed {
        class,
        detail: detail.to_owned(),
        stderr: stderr.to_owned(),
    };
    case.trials[20].outcome = failed(
        FailureClass::Signal,
        "the worker was killed by SIGSEGV after 1.2 s",
        "thread 'worker-1' panicked at workloads/src/structures/nm14.rs:214:9:\nunlinked twice\n",
    );
    case.trials[33].outcome =
        failed(FailureClass::TimedOut, "no reply within 13 s; it was killed with all it had started", "");
    if let Outcome::Replied(reply) = &mut case.trials[5].outcome {
        reply.allocator.name = "system".to_owned();
    }
    case.trials.truncate(110);
    case.claim("harris01", "nm14", 0, Vec::new());
    case
}

/// Ten thousand trials.
pub fn huge() -> Case {
    Case::new(&Shape {
        structures: &["nm14", "harris01", "crossbeam-skiplist", "rwlock-btree"],
        threads: &[1, 2, 3, 4, 6, 8, 12, 16, 24, 32],
        key_ranges: &[10, 100, 1000, 10_000, 100_000, 1_000_000, 10_000_000, 20_000_000, 30_000_000],
        allocators: &["system", "jemalloc", "mimalloc", "snmalloc"],
        n_trials: 6,
    })
}
