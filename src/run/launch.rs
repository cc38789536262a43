//! Starts one worker, with nothing left to chance: descriptors, environment, group, limits, layout.

use std::{
    collections::BTreeMap,
    ffi::OsStr,
    fs::File,
    io::{self, PipeReader, Seek, Write},
    os::fd::{AsRawFd, BorrowedFd, RawFd},
    os::unix::process::CommandExt,
    path::Path,
    process::Command,
};

use rare_workloads::protocol::{ALLOCATOR_VARIABLE, REPLY_FD, Request};
use rustix::{
    fs::{MemfdFlags, Mode, OFlags, memfd_create, open},
    io::{Errno, FdFlags, fcntl_setfd, write},
    process::{
        Pid, Resource, Rlimit, Signal, getpid, getppid, set_parent_process_death_signal, setpriority_process, setrlimit,
    },
    thread::disable_transparent_huge_pages,
};

/// Environment variable whose value is as long as the cell's environment padding. It is always there, so that a padding
/// of n bytes adds exactly n bytes.
const PADDING_VARIABLE: &str = "RARE_PADDING";

/// Where workers run: it exists everywhere, cannot be removed, and nothing is found in it by accident.
const WORKING_FOLDER: &str = "/";

/// What surrounds a worker and is not in its request: it must be so before the process begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Surroundings {
    /// Address space randomisation.
    pub(crate) aslr: bool,
    /// Transparent huge pages as the system has them; otherwise never.
    pub(crate) huge_pages: bool,
    /// Bytes added to the environment.
    pub(crate) environment_padding: u64,
}

/// A started worker and our ends of its pipes, which do not block.
pub(super) struct Started {
    /// The process, not yet reaped.
    pub(super) handle: duct::Handle,
    /// Its number, which is also that of its group.
    pub(super) pid: Pid,
    /// What it writes to [`REPLY_FD`].
    pub(super) reply: PipeReader,
    /// Its standard output.
    pub(super) stdout: PipeReader,
    /// Its standard error.
    pub(super) stderr: PipeReader,
}

/// Starts `worker` on a request, given as it is and as the bytes to send, under the tool whose command line is `prefix`.
pub(super) fn start(
    prefix: &[String],
    worker: &Path,
    request: &Request,
    bytes: &[u8],
    surroundings: Surroundings,
) -> io::Result<Started> {
    let (reply, reply_writer) = pipe()?;
    let (stdout, stdout_writer) = pipe()?;
    let (stderr, stderr_writer) = pipe()?;
    let setup = Setup {
        parent: getpid(),
        reply_writer: reply_writer.as_raw_fd(),
        nice: request.nice,
        aslr: surroundings.aslr,
        huge_pages: surroundings.huge_pages,
    };
    let mut words = prefix.iter().map(OsStr::new).chain([worker.as_os_str()]);
    let program = words.next().expect("the worker is one");
    let expression = duct::cmd(program, words)
        .dir(WORKING_FOLDER)
        .full_env(environment(request, surroundings))
        .stdin_file(in_memory(bytes)?)
        .stdout_file(stdout_writer)
        .stderr_file(stderr_writer)
        .unchecked()
        .before_spawn(move |command| {
            setup.hook(command);
            Ok(())
        });
    let handle = expression.start()?;
    let pid = handle.pids().first().and_then(|&pid| Pid::from_raw(pid.cast_signed()));
    let pid = pid.expect("one started command has one process number");
    // `expression` and `reply_writer` end here: from now on only the worker and its children hold the writing ends.
    Ok(Started { handle, pid, reply, stdout, stderr })
}

/// Returns the whole environment of a worker: nothing of ours is inherited.
///
/// The allow-list is: the allocator, the preload if the plan has one, the padding.
fn environment(request: &Request, surroundings: Surroundings) -> BTreeMap<String, String> {
    let padding = usize::try_from(surroundings.environment_padding).expect("the spec bounds the padding");
    let mut environment = BTreeMap::from([
        (ALLOCATOR_VARIABLE.to_owned(), request.allocator.name.clone()),
        (PADDING_VARIABLE.to_owned(), "x".repeat(padding)),
    ]);
    if let Some(preload) = &request.allocator.preload {
        environment.insert("LD_PRELOAD".to_owned(), preload.path.clone());
    }
    environment
}

/// Makes a pipe whose reading end does not block.
fn pipe() -> io::Result<(PipeReader, io::PipeWriter)> {
    let (reader, writer) = io::pipe()?;
    rustix::io::ioctl_fionbio(&reader, true)?;
    Ok((reader, writer))
}

/// Returns a file that holds `bytes`, to be read from its start. Unlike a pipe it takes any size at once and cannot
/// break when the worker does not read.
fn in_memory(bytes: &[u8]) -> io::Result<File> {
    let mut file = File::from(memfd_create("request", MemfdFlags::CLOEXEC)?);
    file.write_all(bytes)?;
    file.rewind()?;
    Ok(file)
}

/// What the child does between fork and exec.
#[derive(Clone, Copy)]
struct Setup {
    parent: Pid,
    reply_writer: RawFd,
    nice: i32,
    aslr: bool,
    huge_pages: bool,
}

impl Setup {
    fn hook(self, command: &mut Command) {
        command.process_group(0);
        // SAFETY: `apply` is async-signal-safe: it makes system calls on values copied before the fork and neither
        // allocates nor locks; its errors are bare numbers.
        unsafe { command.pre_exec(move || self.apply().map_err(io::Error::from)) };
    }

    fn apply(self) -> Result<(), Errno> {
        // Dies with `rare`: the signal comes when the thread that forked ends, and that one waits for the worker.
        set_parent_process_death_signal(Some(Signal::KILL))?;
        if getppid() != Some(self.parent) {
            return Err(Errno::SRCH);
        }
        setpriority_process(None, self.nice)?;
        // Set in both directions: `rare` itself may run under `setarch -R` or with huge pages switched off.
        randomise_layout(self.aslr)?;
        disable_transparent_huge_pages(!self.huge_pages)?;
        // A crash of a structure under test is a result, not something to dump.
        setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
        volunteer_for_the_kill();
        self.place_reply()?;
        close_the_rest_on_exec();
        Ok(())
    }

    /// Puts the reply pipe at [`REPLY_FD`], open across exec.
    fn place_reply(self) -> Result<(), Errno> {
        // SAFETY: the parent holds this descriptor open until the spawn has returned.
        let writer = unsafe { BorrowedFd::borrow_raw(self.reply_writer) };
        if self.reply_writer == REPLY_FD {
            return fcntl_setfd(writer, FdFlags::empty());
        }
        // What lies at this number is not ours to keep: the standard streams are in place already. At worst it is the pipe
        // on which the standard library reports a failed exec; then a failed exec shows as a worker without a valid reply.
        // SAFETY: it changes only the descriptor table of the child.
        match unsafe { libc::dup2(self.reply_writer, REPLY_FD) } {
            -1 => Err(Errno::BADF),
            _ => Ok(()),
        }
    }
}

/// Switches address space randomisation of the program that will be executed.
fn randomise_layout(on: bool) -> Result<(), Errno> {
    const QUERY: libc::c_ulong = 0xffff_ffff;
    const NO_RANDOMISATION: libc::c_int = libc::ADDR_NO_RANDOMIZE;
    // SAFETY: this value asks for the present personality and changes nothing.
    let present = unsafe { libc::personality(QUERY) };
    let wanted = if on { present & !NO_RANDOMISATION } else { present | NO_RANDOMISATION };
    if present == wanted {
        return Ok(());
    }
    // SAFETY: it takes effect at the next exec and touches no memory of this process.
    match unsafe { libc::personality(libc::c_ulong::from(wanted.cast_unsigned())) } {
        -1 => Err(Errno::PERM),
        _ => Ok(()),
    }
}

/// Makes the kernel choose the worker when memory runs out, not `rare` and not the user's editor.
fn volunteer_for_the_kill() {
    if let Ok(file) = open(c"/proc/self/oom_score_adj", OFlags::WRONLY | OFlags::CLOEXEC, Mode::empty()) {
        let _ = write(file, b"1000");
    }
}

/// Lets no descriptor through that `rare` was itself started with.
fn close_the_rest_on_exec() {
    let first = libc::c_uint::try_from(REPLY_FD + 1).expect("descriptor numbers are positive");
    // Not by the wrapper, which older C libraries lack.
    // SAFETY: it only marks descriptors to be closed by exec; a kernel without the call does nothing.
    let _ = unsafe { libc::syscall(libc::SYS_close_range, first, libc::c_uint::MAX, libc::CLOSE_RANGE_CLOEXEC) };
}

/// What the system does not let this user do to a worker.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Refused {
    /// The nice level.
    Priority,
    /// The setting of address space randomisation.
    Aslr,
}

/// Tells whether this process may give a worker the nice level and the layout, by trying it on a thread that ends at
/// once: both are properties of a thread.
pub(super) fn permits(nice: i32, aslr: bool) -> Result<(), Refused> {
    let attempt = std::thread::spawn(move || {
        setpriority_process(None, nice).map_err(|_| Refused::Priority)?;
        randomise_layout(aslr).map_err(|_| Refused::Aslr)
    });
    attempt.join().expect("the thread makes two system calls")
}
