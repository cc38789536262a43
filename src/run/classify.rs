//! What came of a trial, told from how the worker ended and what it wrote.

use std::{os::unix::process::ExitStatusExt, process::ExitStatus, time::Duration};

use rare_workloads::protocol::{
    FORMAT, Reply,
    frame::{Frame, FrameError, decode},
};

use super::supervise::{Capture, Ended, Killed};
use crate::record::{FailureClass, Outcome};

/// What allocators and the standard library say when memory runs out.
const OUT_OF_MEMORY_WORDS: [&str; 4] =
    ["memory allocation of ", "out of memory", "Out of memory", "Cannot allocate memory"];

/// Signal of the kernel's out-of-memory killer, and of nothing else that a worker meets by itself.
const SIGKILL: i32 = 9;

/// Classifies an ended worker. The exit code proves nothing: only a complete reply to this very request is a success.
pub(super) fn classify(ended: &Ended, request_sha256: &str, time_out: Duration) -> Outcome {
    let (class, detail) = match verdict(ended, request_sha256, time_out) {
        Ok(reply) if ended.leftovers.is_empty() => return Outcome::Replied(reply),
        // Whatever it left was running beside the measurement or was about to disturb the next one.
        Ok(_) => (FailureClass::LeftProcesses, "it replied, and left processes behind".to_owned()),
        Err(failure) => failure,
    };
    let mut detail = detail;
    if !ended.leftovers.is_empty() {
        detail.push_str(&format!("; killed what it had left: {}", ended.leftovers.join(", ")));
    }
    Outcome::Failed { class, detail, stderr: text(&ended.stderr) }
}

fn verdict(ended: &Ended, request_sha256: &str, time_out: Duration) -> Result<Box<Reply>, (FailureClass, String)> {
    if ended.killed == Some(Killed::TimedOut) {
        let detail = format!("not done after {:.1} s, killed; it had {}", time_out.as_secs_f64(), sent(&ended.reply));
        return Err((FailureClass::TimedOut, detail));
    }
    if !ended.reply.is_whole() {
        return Err((FailureClass::BadReply, format!("its reply is {} bytes long", ended.reply.total)));
    }
    match decode(&ended.reply.kept) {
        Ok(Frame::Reply(reply)) => proven(reply, request_sha256),
        Ok(Frame::Refusal(reason)) => Err((FailureClass::Refused, reason)),
        // A cut reply of a killed worker is the death's doing, not another fault.
        Err(FrameError::Empty | FrameError::Truncated { .. }) if ended.status.signal().is_some() => Err(death(ended)),
        Err(FrameError::Empty) if says_out_of_memory(&ended.stderr) => {
            Err((FailureClass::OutOfMemory, format!("it ran out of memory: {}", exit(ended.status))))
        }
        Err(FrameError::Empty) => {
            Err((FailureClass::NoReply, format!("it ended without a reply: {}", exit(ended.status))))
        }
        Err(error) => {
            let cause = std::error::Error::source(&error).map(|cause| format!(": {cause}")).unwrap_or_default();
            Err((FailureClass::BadReply, format!("{error}{cause}")))
        }
    }
}

/// Tells the death of a worker by a signal that we did not send.
fn death(ended: &Ended) -> (FailureClass, String) {
    let signal = ended.status.signal().expect("the caller has seen the signal");
    let detail = format!("killed by {}; it had {}", signal_name(signal), sent(&ended.reply));
    let by_kernel = signal == SIGKILL && ended.oom_killed;
    if by_kernel || says_out_of_memory(&ended.stderr) {
        return (FailureClass::OutOfMemory, format!("it ran out of memory: {detail}"));
    }
    (FailureClass::Signal, detail)
}

/// Accepts a reply to this request in this format.
fn proven(reply: Box<Reply>, request_sha256: &str) -> Result<Box<Reply>, (FailureClass, String)> {
    if reply.format != FORMAT {
        return Err((FailureClass::BadReply, format!("its reply has format {}, not {FORMAT}", reply.format)));
    }
    if reply.request_sha256 != request_sha256 {
        let detail = format!("its reply is to request {}, not to {request_sha256}", reply.request_sha256);
        return Err((FailureClass::BadReply, detail));
    }
    Ok(reply)
}

fn says_out_of_memory(stderr: &Capture) -> bool {
    let text = String::from_utf8_lossy(&stderr.kept);
    OUT_OF_MEMORY_WORDS.iter().any(|words| text.contains(words))
}

fn sent(reply: &Capture) -> String {
    match reply.total {
        0 => "written no reply".to_owned(),
        bytes => format!("written {bytes} bytes of a reply"),
    }
}

fn exit(status: ExitStatus) -> String {
    match status.code() {
        Some(code) => format!("exit code {code}"),
        None => status.signal().map_or_else(|| "an unknown end".to_owned(), signal_name),
    }
}

/// Returns a stream as text, with a last line that says what was dropped.
pub(super) fn text(capture: &Capture) -> String {
    let mut text = String::from_utf8_lossy(&capture.kept).into_owned();
    if !capture.is_whole() {
        text.push_str(&format!("\n[{} of {} bytes kept]", capture.kept.len(), capture.total));
    }
    text
}

fn signal_name(signal: i32) -> String {
    let name = match signal {
        1 => "SIGHUP",
        2 => "SIGINT",
        3 => "SIGQUIT",
        4 => "SIGILL",
        5 => "SIGTRAP",
        6 => "SIGABRT",
        7 => "SIGBUS",
        8 => "SIGFPE",
        9 => "SIGKILL",
        11 => "SIGSEGV",
        13 => "SIGPIPE",
        14 => "SIGALRM",
        15 => "SIGTERM",
        24 => "SIGXCPU",
        25 => "SIGXFSZ",
        31 => "SIGSYS",
        other => return format!("signal {other}"),
    };
    name.to_owned()
}
