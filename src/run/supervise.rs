//! Watches one worker until it and all it started are gone.
//!
//! One thread, one `poll`: while the worker measures, nothing here wakes up.

use std::{
    io::{self, PipeReader, Read},
    os::fd::{AsFd, OwnedFd},
    os::unix::process::ExitStatusExt,
    process::ExitStatus,
    time::{Duration, Instant},
};

use rustix::{
    event::{PollFd, PollFlags, Timespec, poll},
    io::Errno,
    process::{Pid, PidfdFlags, Signal, kill_process_group, pidfd_open},
};

use super::{Interrupt, descendants::Others, launch::Started};

/// A worker that is asked to end is given this long to do so.
const TERM_GRACE: Duration = Duration::from_millis(500);

/// A killed worker that is not gone within this is stuck in the kernel, as on a dead network file system.
const KILL_PATIENCE: Duration = Duration::from_secs(10);

/// When the worker is gone, what is in its pipes is read within this; whoever still holds them then is killed.
const PIPE_GRACE: Duration = Duration::from_millis(100);

/// Bytes of a standard stream that are kept.
const STREAM_BYTES: usize = 64 << 10;

/// Bytes of a reply that are kept; no honest one comes near.
const REPLY_BYTES: usize = 64 << 20;

/// How a worker ended and what it said.
pub(super) struct Ended {
    /// As the kernel tells it.
    pub(super) status: ExitStatus,
    /// Why it was killed, if it was we who killed it.
    pub(super) killed: Option<Killed>,
    /// From the reply descriptor.
    pub(super) reply: Capture,
    /// From standard output.
    pub(super) stdout: Capture,
    /// From standard error.
    pub(super) stderr: Capture,
    /// CPU time of the worker and of the children it waited for; `None` when the kernel does not tell.
    pub(super) cpu: Option<Duration>,
    /// Whether the kernel killed any process for want of memory meanwhile.
    pub(super) oom_killed: bool,
    /// Processes that outlived it, in words.
    pub(super) leftovers: Vec<String>,
}

/// Why we killed a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Killed {
    /// It took too long.
    TimedOut,
    /// The user asked us to stop.
    Interrupted,
}

/// The beginning of a stream and the length of all of it.
#[derive(Default)]
pub(super) struct Capture {
    /// The beginning.
    pub(super) kept: Vec<u8>,
    /// Bytes in all.
    pub(super) total: u64,
}

impl Capture {
    /// Tells whether all of it was kept.
    pub(super) fn is_whole(&self) -> bool {
        self.kept.len() as u64 == self.total
    }
}

/// Waits for a worker; kills it after `time_out` or when interrupted.
pub(super) fn supervise(
    started: Started,
    others: &Others,
    time_out: Duration,
    interrupt: &Interrupt,
) -> io::Result<Ended> {
    let Started { handle, pid, reply, stdout, stderr } = started;
    let kill = |_: &Errno| {
        let _ = kill_process_group(pid, Signal::KILL);
    };
    let mut watch = Watch {
        pid,
        exit: Some(pidfd_open(pid, PidfdFlags::empty()).inspect_err(kill)?),
        streams: [
            Stream::new(reply, REPLY_BYTES),
            Stream::new(stdout, STREAM_BYTES),
            Stream::new(stderr, STREAM_BYTES),
        ],
        killed: None,
        was_sent_kill: false,
        buffer: vec![0; 64 << 10],
    };
    let oom_kills_before = oom_kills();
    let waited = watch.until_exit(Instant::now() + time_out, interrupt);
    if let Err(error) = waited {
        let _ = kill_process_group(pid, Signal::KILL);
        return Err(error);
    }
    // The number stays taken until the worker is reaped, so the usage and the signals above cannot hit another process.
    let cpu = cpu_time(pid);
    let status = handle.wait()?.status;
    watch.until_silence(Instant::now() + PIPE_GRACE)?;
    let leftovers = others.kill_rest();
    // The killed have let go of the pipes; what they wrote last is part of the evidence.
    watch.until_silence(Instant::now() + PIPE_GRACE)?;
    // Anybody may have sent the signal; only the counter tells that it was the kernel.
    let oom_killed = status.signal() == Some(Signal::KILL.as_raw()) && oom_kills() > oom_kills_before;
    let [reply, stdout, stderr] = watch.streams.map(|stream| stream.capture);
    Ok(Ended { status, killed: watch.killed, reply, stdout, stderr, cpu, oom_killed, leftovers })
}

/// What is being watched.
struct Watch {
    pid: Pid,
    /// Readable when the worker has ended; `None` after that.
    exit: Option<OwnedFd>,
    streams: [Stream; 3],
    killed: Option<Killed>,
    /// Whether KILL was sent, after which only waiting is left.
    was_sent_kill: bool,
    buffer: Vec<u8>,
}

impl Watch {
    /// Waits for the end of the worker itself, escalating from TERM to KILL when it takes too long.
    fn until_exit(&mut self, mut deadline: Instant, interrupt: &Interrupt) -> io::Result<()> {
        while self.exit.is_some() {
            let listening = self.killed != Some(Killed::Interrupted);
            self.step(deadline, listening.then_some(interrupt))?;
            let late = Instant::now() >= deadline && self.exit.is_some();
            if listening && interrupt.signal().is_some() {
                self.killed = Some(Killed::Interrupted);
                deadline = self.kill();
            } else if late && self.killed.is_none() {
                self.killed = Some(Killed::TimedOut);
                self.signal(Signal::TERM);
                deadline = Instant::now() + TERM_GRACE;
            } else if late && !self.was_sent_kill {
                deadline = self.kill();
            } else if late {
                return Err(io::Error::new(io::ErrorKind::TimedOut, "it cannot be killed"));
            }
        }
        Ok(())
    }

    /// Kills the worker's group. Returns when it must be gone.
    fn kill(&mut self) -> Instant {
        self.was_sent_kill = true;
        self.signal(Signal::KILL);
        Instant::now() + KILL_PATIENCE
    }

    /// Reads the streams until nobody can write to them any more, or until the deadline.
    fn until_silence(&mut self, deadline: Instant) -> io::Result<()> {
        while self.streams.iter().any(|stream| stream.source.is_some()) && Instant::now() < deadline {
            self.step(deadline, None)?;
        }
        Ok(())
    }

    fn signal(&self, signal: Signal) {
        // It may have ended in this very moment; then the exit is seen next.
        let _ = kill_process_group(self.pid, signal);
    }

    /// Waits for anything to happen until `deadline`, and reads what came.
    fn step(&mut self, deadline: Instant, interrupt: Option<&Interrupt>) -> io::Result<()> {
        let mut fds = Vec::with_capacity(5);
        fds.extend(self.exit.as_ref().map(|exit| PollFd::new(exit, PollFlags::IN)));
        for stream in &self.streams {
            fds.extend(stream.source.as_ref().map(|source| PollFd::new(source, PollFlags::IN)));
        }
        fds.extend(interrupt.map(|interrupt| PollFd::from_borrowed_fd(interrupt.as_fd(), PollFlags::IN)));
        let left = deadline.saturating_duration_since(Instant::now());
        let left = Timespec::try_from(left).unwrap_or(Timespec { tv_sec: i64::MAX, tv_nsec: 0 });
        match poll(&mut fds, Some(&left)) {
            Ok(_) | Err(Errno::INTR) => {}
            Err(error) => return Err(error.into()),
        }
        let exited = self.exit.is_some() && fds.first().is_some_and(|fd| !fd.revents().is_empty());
        // The readers do not block, so it costs nothing to ask each.
        for stream in &mut self.streams {
            stream.read(&mut self.buffer)?;
        }
        if exited {
            self.exit = None;
        }
        Ok(())
    }
}

/// One pipe of the worker.
struct Stream {
    /// `None` when nobody can write to it any more.
    source: Option<PipeReader>,
    capture: Capture,
    limit: usize,
}

impl Stream {
    fn new(source: PipeReader, limit: usize) -> Self {
        Self { source: Some(source), capture: Capture::default(), limit }
    }

    /// Reads one buffer if there is something; what exceeds the limit is counted and dropped.
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<()> {
        let Some(source) = &mut self.source else { return Ok(()) };
        match source.read(buffer) {
            Ok(0) => self.source = None,
            Ok(n) => {
                let room = self.limit - self.capture.kept.len();
                self.capture.kept.extend_from_slice(&buffer[..n.min(room)]);
                self.capture.total += n as u64;
            }
            Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
            Err(error) => return Err(error),
        }
        Ok(())
    }
}

/// Returns the CPU time of an ended process that is not reaped yet.
fn cpu_time(pid: Pid) -> Option<Duration> {
    // SAFETY: all-zero bytes are valid values of these plain C structures.
    let mut info: libc::siginfo_t = unsafe { std::mem::zeroed() };
    // SAFETY: as above.
    let mut usage: libc::rusage = unsafe { std::mem::zeroed() };
    // The libc wrapper leaves out the fifth argument, for which the call is made.
    // SAFETY: both pointers are to live, writable structures of the types that the call fills in.
    let result = unsafe {
        libc::syscall(
            libc::SYS_waitid,
            libc::P_PID,
            pid.as_raw_nonzero().get(),
            &raw mut info,
            libc::WEXITED | libc::WNOWAIT,
            &raw mut usage,
        )
    };
    if result != 0 {
        return None;
    }
    let time = |value: libc::timeval| {
        Duration::new(value.tv_sec.cast_unsigned(), u32::try_from(value.tv_usec * 1000).unwrap_or(0))
    };
    Some(time(usage.ru_utime) + time(usage.ru_stime))
}

/// Returns how many processes the kernel has killed for want of memory since the start of the machine.
fn oom_kills() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/vmstat").ok()?;
    text.lines().find_map(|line| line.strip_prefix("oom_kill ")?.trim().parse().ok())
}
