//! Check `interference`: nothing else took the CPUs of a trial while it ran.
//!
//! Never leaves a trial out: that would choose trials by their result. It says which ones were disturbed, and by what.

use std::fmt::{self, Display, Formatter};

use rare_workloads::protocol::{Length, ThreadReply};

use super::{Check, Grade, Info, Replied, Row, Subject, Verdict};
use crate::{record::Interference, stats::describe::median, verdict::Evidence};

/// Share of the CPU time of a trial whose loss is worth a warning: above all but 1 in 500 trials on a quiet guest with
/// two CPUs, and half of what a single other busy process takes from two threads there.
const WARN_SHARE: f64 = 0.15;

/// Share whose loss is a failure: what a single other busy process takes from two threads on two CPUs is a third.
const FAIL_SHARE: f64 = 0.3;

/// What a thread may always lose, in nanoseconds: a few turns of housekeeping, however short the trial.
const LOSS_FLOOR_NS: f64 = 10e6;

/// How many times the floor a failure takes: a trial too short to average a disturbance is not proof of a busy machine.
const FAIL_FLOORS: f64 = 6.0;

/// What rounding may add to a difference of the kernel's times, in nanoseconds: a tick of 10 ms for each of the five kinds
/// of time that are added up.
const TICKS_FLOOR_NS: f64 = 50e6;

/// Interrupts of devices, per second and CPU, at about 10 microseconds each with what follows them: 1 % of the time.
const MANY_INTERRUPTS: f64 = 1000.0;

/// A clock rate this far below that of other trials is a slower machine.
const LOW_CLOCK: f64 = 0.9;

/// Share of trials at a low clock rate that is worth a warning; the rate is a snapshot, and single ones are off.
const MANY_LOW: f64 = 0.05;

static INFO: Info = Info {
    name: "interference",
    title: "Interference",
    rule: "threads that never waited ran all the time; other processes and the hypervisor took little of the CPUs; nothing \
           was swapped or throttled; no pinned thread migrated; devices interrupted the CPUs of the trial rarely; the clock \
           rate was that of the other trials. Involuntary switches are named, not judged: housekeeping causes many short \
           ones",
    threshold: "of a trial's CPU time 15 % warns and 30 % fails, but for 10 ms of each thread and what the kernel's ticks of \
                10 ms may round up; a swapped page, a throttling event or 1,000 device interrupts per second and CPU warn; a \
                migration of a pinned thread fails; over 5 % of trials 10 % below the median clock rate warn",
    source: "BenchExec (Beyer, Löwe and Wendler 2019); Hoefler and Belli, SC'15, rule 9",
    reason: "a disturbed trial measures its neighbours too, and which structure it hits is luck",
    remedy: "stop what else runs, keep device interrupts off the CPUs of the trials, lengthen the trials, and run again; \
             disturbed trials stay in every number, so look at the points of the cells it names",
};

/// See [`INFO`].
pub(super) struct Disturbance;

impl Check for Disturbance {
    fn info(&self) -> &'static Info {
        &INFO
    }

    fn judge(&self, evidence: &Evidence) -> Verdict {
        let timed: Vec<Replied> = evidence.replied().filter(is_timed).collect();
        if timed.is_empty() {
            return Verdict::new(&INFO, Grade::Unknown, "no timed trial has a reply", Vec::new());
        }
        let mut rows: Vec<Row> = timed.iter().flat_map(rows).collect();
        let n_disturbed = rows.chunk_by(|a, b| a.subject == b.subject).count();
        rows.extend(slow_clock(&timed));
        let silent = silent(&timed);
        let worst = rows.iter().map(|row| row.grade).max();
        let found = rows.iter().find(|row| Some(row.grade) == worst).map(|row| {
            let n_trials = timed.len();
            format!("{n_disturbed} of {n_trials} trials disturbed, such as: {}; ", row.finding)
        });
        let summary = format!("{}{}", found.unwrap_or_default(), overview(&timed));
        match (worst, &silent[..]) {
            (Some(grade), _) => Verdict::new(&INFO, grade, summary, rows),
            (None, []) => Verdict::new(&INFO, Grade::Pass, summary, rows),
            (None, silent) => {
                let summary = format!("the kernel tells nothing of {}; {summary}", silent.join(", "));
                Verdict::new(&INFO, Grade::Unknown, summary, rows)
            }
        }
    }
}

fn is_timed(replied: &Replied) -> bool {
    matches!(replied.trial.request.length, Length::Nanos(_))
}

fn rows(replied: &Replied) -> Vec<Row> {
    let subject = Subject::of(replied);
    let findings = findings(replied).into_iter();
    findings.map(|(grade, finding)| Row { subject, finding, grade }).collect()
}

/// What disturbed a trial.
fn findings(replied: &Replied) -> Vec<(Grade, String)> {
    let mut findings = Vec::new();
    let mut add = |grade: Option<Grade>, text: String| findings.extend(grade.map(|grade| (grade, text)));
    if let Some((loss, thread)) = worst_loss(replied) {
        let switches = thread.involuntary_switches;
        let text = format!("a thread that never waited did not run for {loss}, in {switches} involuntary switches");
        add(loss.grade(), text);
    }
    if let Some(loss) = others(replied) {
        add(loss.grade(), format!("other processes took {loss} of its CPUs' time"));
    }
    if let Some(loss) = steal(replied) {
        add(loss.grade(), format!("the hypervisor took {loss} of its CPUs' time"));
    }
    let interference = &replied.trial.interference;
    if let Some(pages @ 1..) = interference.swapped_pages {
        add(Some(Grade::Warn), format!("{pages} pages were swapped"));
    }
    if let Some(events @ 1..) = interference.throttled {
        add(Some(Grade::Warn), format!("{events} throttling events"));
    }
    if let Some(rate) = interrupt_rate(replied).filter(|&rate| rate > MANY_INTERRUPTS) {
        add(Some(Grade::Warn), format!("{rate:.0} device interrupts per second on each of its CPUs"));
    }
    for (thread_idx, thread) in replied.reply.threads.iter().enumerate() {
        if let (Some(cpu), Ok(n @ 1..)) = (thread.cpu_asked, &thread.migrations) {
            add(Some(Grade::Fail), format!("thread {thread_idx}, pinned to CPU {cpu}, migrated {n} times"));
        }
    }
    findings
}

/// CPU time that a trial did not get of what it should have had, in nanoseconds.
struct Loss {
    lost_ns: f64,
    of_ns: f64,
    /// Less than this is not judged.
    floor_ns: f64,
}

impl Loss {
    fn share(&self) -> f64 {
        self.lost_ns / self.of_ns
    }

    fn grade(&self) -> Option<Grade> {
        let beyond = |share: f64, n_floors: f64| self.share() > share && self.lost_ns > n_floors * self.floor_ns;
        if beyond(FAIL_SHARE, FAIL_FLOORS) {
            return Some(Grade::Fail);
        }
        beyond(WARN_SHARE, 1.0).then_some(Grade::Warn)
    }
}

impl Display for Loss {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{:.0} ms ({:.0} %)", self.lost_ns / 1e6, 100.0 * self.share())
    }
}

/// The thread that was kept from running the longest, of those that never waited by themselves: of the others the kernel
/// does not tell why they did not run.
fn worst_loss<'r>(replied: &Replied<'r>) -> Option<(Loss, &'r ThreadReply)> {
    let loss = |thread: &'r ThreadReply| {
        let window_ns = thread.stop_ns.checked_sub(thread.start_ns).filter(|&window_ns| window_ns > 0)?;
        let ran_ns = thread.user_ns + thread.system_ns;
        let lost_ns = window_ns.saturating_sub(ran_ns) as f64;
        let loss = Loss { lost_ns, of_ns: window_ns as f64, floor_ns: LOSS_FLOOR_NS };
        (thread.voluntary_switches == 0).then_some((loss, thread))
    };
    let losses = replied.reply.threads.iter().filter_map(loss);
    losses.max_by(|(a, _), (b, _)| a.share().total_cmp(&b.share()))
}

/// CPU time of other processes: on the CPUs of the trial where they were recorded, else on all CPUs, beside what the threads
/// of the trial were to have.
fn others(replied: &Replied) -> Option<Loss> {
    let interference = &replied.trial.interference;
    let n_threads = replied.trial.request.cpus.len() as f64;
    // The times of each CPU are rounded on their own.
    let on_pinned = interference.pinned_other_cpu_ns.map(|other| (other, n_threads * TICKS_FLOOR_NS));
    let (other_ns, floor_ns) = on_pinned.or(interference.other_cpu_ns.map(|other| (other, TICKS_FLOOR_NS)))?;
    Some(Loss { lost_ns: other_ns as f64, of_ns: due_ns(replied)?, floor_ns })
}

fn steal(replied: &Replied) -> Option<Loss> {
    let steal_ns = replied.trial.interference.steal_ns?;
    Some(Loss { lost_ns: steal_ns as f64, of_ns: due_ns(replied)?, floor_ns: TICKS_FLOOR_NS })
}

/// What the threads of a trial were to have, from the worker's start to its end: the interval of the counters.
fn due_ns(replied: &Replied) -> Option<f64> {
    let due_ns = replied.trial.wall.0 as f64 * replied.trial.request.cpus.len() as f64;
    (due_ns > 0.0).then_some(due_ns)
}

fn interrupt_rate(replied: &Replied) -> Option<f64> {
    let due_ns = due_ns(replied)?;
    replied.trial.interference.device_interrupts.map(|count| count as f64 * 1e9 / due_ns)
}

/// Says so where the machine was slower in many trials than in the middle one.
fn slow_clock(timed: &[Replied]) -> Option<Row> {
    let rates: Vec<f64> =
        timed.iter().filter_map(|replied| Some(replied.trial.interference.after_khz? as f64)).collect();
    let middle = median(&rates)?;
    let n_low = rates.iter().filter(|&&rate| rate < LOW_CLOCK * middle).count();
    (n_low as f64 > MANY_LOW * rates.len() as f64).then(|| Row {
        subject: Subject::Run,
        finding: format!(
            "after {n_low} of {} trials the clock rate was over 10 % below the median of {:.2} GHz",
            rates.len(),
            middle / 1e6
        ),
        grade: Grade::Warn,
    })
}

/// Something that a record may tell, and whether it does.
type Fact = (&'static str, fn(&Interference) -> bool);

/// What is needed for a pass and was recorded of no trial.
fn silent(timed: &[Replied]) -> Vec<&'static str> {
    let needed: [Fact; 3] = [
        ("other processes", |seen| seen.other_cpu_ns.or(seen.pinned_other_cpu_ns).is_some()),
        ("the hypervisor's share", |seen| seen.steal_ns.is_some()),
        ("swapping", |seen| seen.swapped_pages.is_some()),
    ];
    never(timed, &needed)
}

/// Which of some facts were recorded of no trial.
fn never(timed: &[Replied], facts: &[Fact]) -> Vec<&'static str> {
    let is_known = |tells: &fn(&Interference) -> bool| timed.iter().any(|one| tells(&one.trial.interference));
    facts.iter().filter(|(_, tells)| !is_known(tells)).map(|(name, _)| *name).collect()
}

/// The largest loss of each kind, and what nobody told.
fn overview(timed: &[Replied]) -> String {
    let most = |losses: &mut dyn Iterator<Item = Loss>| losses.max_by(|a, b| a.share().total_cmp(&b.share()));
    let n_busy = timed.iter().filter(|replied| worst_loss(replied).is_some()).count();
    let mut parts = vec![format!("in {} timed trials", timed.len())];
    parts.extend(
        most(&mut timed.iter().filter_map(|replied| Some(worst_loss(replied)?.0)))
            .map(|loss| format!("threads that never waited (in {n_busy}) were kept from running for at most {loss}")),
    );
    parts.extend(most(&mut timed.iter().filter_map(others)).map(|loss| format!("other processes took at most {loss}")));
    parts.extend(most(&mut timed.iter().filter_map(steal)).map(|loss| format!("the hypervisor at most {loss}")));
    let optional: [Fact; 3] = [
        ("throttling", |seen| seen.throttled.is_some()),
        ("interrupts on the CPUs of the trial", |seen| seen.device_interrupts.is_some()),
        ("clock rates", |seen| seen.after_khz.is_some()),
    ];
    let untold = never(timed, &optional);
    if !untold.is_empty() {
        parts.push(format!("not told here: {}", untold.join(", ")));
    }
    parts.join("; ")
}
