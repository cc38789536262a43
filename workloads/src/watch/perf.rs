//! Switches `perf record` on for the window and off after it, through the fifos of its option `--control`.
//!
//! It is switched on while the threads wait for the window without running, and off while they wait for what comes after:
//! besides the window, samples can lie only in their waking and their way to the start line.

use std::{
    fs::{self, File, OpenOptions},
    io::{self, Read, Write},
    os::{
        fd::AsFd,
        unix::fs::{FileTypeExt, OpenOptionsExt},
    },
    time::{Duration, Instant},
};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use crate::protocol::Watch;

/// How long an answer is awaited: a thousand times what one takes.
const PATIENCE: Duration = Duration::from_secs(10);

/// What `perf` answers when it has done what it was told.
const DONE: &[u8] = b"ack\n";

/// The switch of the process that records this one, if there is one.
#[derive(Debug)]
pub(crate) struct Switch(Option<Fifos>);

#[derive(Debug)]
struct Fifos {
    control: File,
    acknowledgement: File,
    /// What was read and is no whole answer yet.
    unread: Vec<u8>,
}

impl Switch {
    /// Opens the fifos, if `perf` is to watch.
    ///
    /// # Errors
    /// In words: a fifo cannot be opened, is none, or has nobody at its other end.
    pub fn open(watch: Option<&Watch>) -> Result<Self, String> {
        let Some(Watch::Perf { control, acknowledgement }) = watch else { return Ok(Self(None)) };
        Ok(Self(Some(Fifos {
            control: fifo(control, OpenOptions::new().write(true))?,
            acknowledgement: fifo(acknowledgement, OpenOptions::new().read(true))?,
            unread: Vec::new(),
        })))
    }

    /// Has samples taken from now on.
    ///
    /// # Errors
    /// In words: `perf` is gone, or does not answer.
    pub fn turn_on(&mut self) -> Result<(), String> {
        self.0.as_mut().map_or(Ok(()), |fifos| fifos.command("enable", PATIENCE))
    }

    /// Has no samples taken from now on.
    ///
    /// # Errors
    /// As [`Self::turn_on`].
    pub fn turn_off(&mut self) -> Result<(), String> {
        self.0.as_mut().map_or(Ok(()), |fifos| fifos.command("disable", PATIENCE))
    }
}

/// Opens one end of a fifo without waiting for the other.
fn fifo(path: &str, end: &mut OpenOptions) -> Result<File, String> {
    let failed = |error: io::Error| match error.raw_os_error() {
        Some(libc::ENXIO) => format!("cannot open the fifo {path} of perf: nobody reads from it"),
        _ => format!("cannot open the fifo {path} of perf: {error}"),
    };
    if !fs::metadata(path).map_err(failed)?.file_type().is_fifo() {
        return Err(format!("{path}, which is to be a fifo of perf, is none"));
    }
    end.custom_flags(libc::O_NONBLOCK).open(path).map_err(failed)
}

impl Fifos {
    /// Gives a command and waits until it is carried out.
    fn command(&mut self, command: &str, patience: Duration) -> Result<(), String> {
        let deadline = Instant::now() + patience;
        self.control
            .write_all(format!("{command}\n").as_bytes())
            .map_err(|error| format!("cannot tell perf to {command}: {error}"))?;
        while !self.take_answer() {
            self.wait(deadline).map_err(|reason| format!("perf does not {command}: {reason}"))?;
        }
        Ok(())
    }

    /// Takes one answer out of what was read, if it is there. `perf` ends each with a null byte, which is no part of the
    /// next.
    fn take_answer(&mut self) -> bool {
        let end = self.unread.windows(DONE.len()).position(|bytes| bytes == DONE).map(|at| at + DONE.len());
        end.inspect(|&end| _ = self.unread.drain(..end)).is_some()
    }

    /// Reads more, which is there at the deadline at the latest.
    fn wait(&mut self, deadline: Instant) -> Result<(), String> {
        let left = deadline.saturating_duration_since(Instant::now());
        let timeout = Timespec { tv_sec: left.as_secs().cast_signed(), tv_nsec: left.subsec_nanos().into() };
        let mut answers = [PollFd::from_borrowed_fd(self.acknowledgement.as_fd(), PollFlags::IN)];
        match poll(&mut answers, Some(&timeout)) {
            Ok(0) => return Err(format!("no answer within {} s", PATIENCE.as_secs())),
            Ok(_) | Err(rustix::io::Errno::INTR) => {}
            Err(error) => return Err(format!("its answer cannot be awaited: {error}")),
        }
        let mut bytes = [0; 64];
        match self.acknowledgement.read(&mut bytes) {
            Ok(0) => Err("it is gone".to_owned()),
            Ok(n_bytes) => {
                self.unread.extend_from_slice(&bytes[..n_bytes]);
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(()),
            Err(error) => Err(format!("its answer cannot be read: {error}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{os::fd::OwnedFd, thread};

    use super::*;

    /// The worker's ends, and those of what plays `perf`.
    fn fifos() -> (Fifos, io::PipeReader, io::PipeWriter) {
        let (commands, control) = io::pipe().expect("there are pipes");
        let (acknowledgement, answers) = io::pipe().expect("there are pipes");
        let (control, acknowledgement) = (OwnedFd::from(control).into(), OwnedFd::from(acknowledgement).into());
        (Fifos { control, acknowledgement, unread: Vec::new() }, commands, answers)
    }

    #[test]
    fn each_command_waits_for_its_own_answer() {
        let (mut fifos, mut commands, mut answers) = fifos();
        let perf = thread::spawn(move || {
            let mut told = [0; 7];
            commands.read_exact(&mut told).expect("a command comes");
            // As perf does, with a null byte, and in pieces.
            answers.write_all(b"ac").expect("it is read");
            answers.write_all(b"k\n\0").expect("it is read");
            let mut told_next = [0; 8];
            commands.read_exact(&mut told_next).expect("a command comes");
            answers.write_all(b"ack\n\0").expect("it is read");
            (told, told_next)
        });
        fifos.command("enable", PATIENCE).expect("it is answered");
        fifos.command("disable", PATIENCE).expect("it is answered");
        assert_eq!(perf.join().expect("it does not panic"), (*b"enable\n", *b"disable\n"));
    }

    #[test]
    fn silence_and_absence_are_told_apart() {
        let (mut fifos, commands, answers) = fifos();
        let silent = fifos.command("enable", Duration::from_millis(20)).expect_err("nobody answers");
        assert!(silent.contains("perf does not enable: no answer"), "{silent}");
        drop(answers);
        assert_eq!(fifos.command("enable", PATIENCE), Err("perf does not enable: it is gone".to_owned()));
        drop(commands);
        let gone = fifos.command("enable", PATIENCE).expect_err("nobody listens");
        assert!(gone.contains("cannot tell perf to enable"), "{gone}");
    }
}
