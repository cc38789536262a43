//! The body of `rare-worker`: one request from standard input, one trial, one frame on descriptor [`REPLY_FD`].
//!
//! Must not decide how a trial is judged, nor substitute anything for what was asked: what cannot be honoured is refused
//! in words.

use std::{
    any::Any,
    collections::BTreeMap,
    fs::File,
    io::{self, IsTerminal, Read, Write},
    os::fd::FromRawFd,
    panic,
    process::ExitCode,
    sync::Mutex,
};

use crate::{
    alloc,
    harness::{self, Measurements},
    identity::Identity,
    nodes::{self, Nodes},
    protocol::{AllocatorProof, FORMAT, Length, Phases, REPLY_FD, Reclamation, Reply, Request, frame},
    reclaim::{BATCHES, hyaline::BATCH_PARAMETER},
    structures::{self, Driver, ParameterInfo, Structure},
    watch,
};

/// Longest request that is read: a list of a thousand CPUs takes some kilobytes.
const REQUEST_BYTES_MAX: u64 = 1 << 20;

/// Runs the worker: `--identity` prints what this build is, no argument runs one trial.
pub fn main() -> ExitCode {
    let main_ns = harness::now_ns();
    let arguments: Vec<_> = std::env::args_os().skip(1).collect();
    match &arguments[..] {
        [] => {}
        [argument] if argument == "--identity" => return print_identity(),
        _ => return usage("takes no arguments but `--identity`"),
    }
    // Before anything is opened, for it would get the number of the missing descriptor.
    let Some(reply_to) = reply_file().filter(|_| !io::stdin().is_terminal()) else {
        return usage(
            "runs one trial for `rare`, which passes a request on standard input and takes the reply on descriptor 3",
        );
    };
    let answer = match read_request() {
        Ok(bytes) => answer(&bytes, main_ns),
        Err(reason) => Err(reason),
    };
    let (bytes, code) = match &answer {
        Ok(reply) => (frame::encode_reply(reply), 0),
        Err(reason) => (frame::encode_refusal(reason), 1),
    };
    match write_reply(reply_to, &bytes) {
        Ok(()) => end(code),
        Err(error) => {
            eprintln!("rare-worker: cannot write the reply: {error}");
            ExitCode::FAILURE
        }
    }
}

/// Ends the process at once. A structure that was not dropped and allocators that would tidy up have nothing to add, and
/// the next trial waits.
fn end(code: i32) -> ! {
    // SAFETY: nothing is buffered: the reply was written through, and standard error is not buffered.
    unsafe { libc::_exit(code) }
}

fn usage(what: &str) -> ExitCode {
    eprintln!("rare-worker: {what}");
    ExitCode::from(2)
}

fn print_identity() -> ExitCode {
    let identity = serde_json::to_string(&Identity::here()).expect("strings and numbers can always be written as JSON");
    match writeln!(io::stdout(), "{identity}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => usage(&format!("cannot print: {error}")),
    }
}

/// Takes over the reply descriptor if it is open.
fn reply_file() -> Option<File> {
    // SAFETY: asks for the flags of a number, whether or not it is a descriptor.
    let flags = unsafe { libc::fcntl(REPLY_FD, libc::F_GETFD) };
    // SAFETY: it is open, and nothing else in this process knows of it: nothing was opened yet.
    (flags >= 0).then(|| unsafe { File::from_raw_fd(REPLY_FD) })
}

fn read_request() -> Result<Vec<u8>, String> {
    let mut bytes = Vec::new();
    io::stdin()
        .lock()
        .take(REQUEST_BYTES_MAX + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| format!("cannot read the request: {error}"))?;
    if bytes.len() as u64 > REQUEST_BYTES_MAX {
        return Err(format!("the request is longer than {REQUEST_BYTES_MAX} bytes"));
    }
    Ok(bytes)
}

fn write_reply(mut file: File, bytes: &[u8]) -> io::Result<()> {
    file.write_all(bytes)
}

/// Runs the trial that `request_bytes` ask for.
fn answer(request_bytes: &[u8], main_ns: u64) -> Result<Reply, String> {
    let request = parse(request_bytes)?;
    let structure = structures::find(&request.structure)
        .ok_or_else(|| format!("this worker has no structure `{}`", request.structure))?;
    let driver = driver(structure, &request)?;
    let request =
        Request { structure_parameters: complete_parameters(structure.info.parameters, &request)?, ..request };
    validate(&request)?;
    let nice = nice_in_effect(request.nice)?;
    manage_nodes(structure, request.nodes)?;
    let proof = alloc::prove(&request.allocator)?;
    let mut measured = panic::catch_unwind(panic::AssertUnwindSafe(|| driver.trial(&request)))
        .unwrap_or_else(|panic| Err(format!("the trial panicked: {}", harness::panic_message(&*panic))))?;
    leave(measured.structure.take());
    Ok(reply(frame::sha256_hex(request_bytes), proof, nice, main_ns, measured))
}

/// Keeps a structure until the process ends, reachable, so that valgrind does not take all of it for lost. What it reaches
/// by tagged pointers still looks lost: leaks are sought in trials of a number of operations, which drop theirs.
fn leave(structure: Option<Box<dyn Any + Send>>) {
    static LEFT: Mutex<Option<Box<dyn Any + Send>>> = Mutex::new(None);
    *LEFT.lock().expect("nothing panics under this lock") = structure;
}

/// Reads the version before the rest, so that another version is named rather than called garbled.
fn parse(bytes: &[u8]) -> Result<Request, String> {
    let garbled = |error: serde_json::Error| format!("the request is not one: {error}");
    let value: serde_json::Value = serde_json::from_slice(bytes).map_err(garbled)?;
    match value.get("format").and_then(serde_json::Value::as_u64) {
        Some(format) if format == u64::from(FORMAT) => serde_json::from_slice(bytes).map_err(garbled),
        Some(format) => Err(format!("request format {format}, this worker reads {FORMAT}")),
        None => Err("the request tells no format".to_owned()),
    }
}

fn driver(structure: &Structure, request: &Request) -> Result<&'static dyn Driver, String> {
    structure.driver(request.reclamation).ok_or_else(|| {
        format!("`{}` does not support the reclamation `{}`", request.structure, request.reclamation.name())
    })
}

/// Adds the defaults of the parameters that the request leaves out, and those of the reclamation scheme.
fn complete_parameters(known: &[ParameterInfo], request: &Request) -> Result<BTreeMap<String, u64>, String> {
    for (name, value) in &request.structure_parameters {
        let parameter = known
            .iter()
            .find(|parameter| parameter.name == name)
            .ok_or_else(|| format!("`{}` has no parameter `{name}`", request.structure))?;
        let (smallest, largest) = parameter.range;
        if !(smallest..=largest).contains(value) {
            return Err(format!("`{name}` of `{}` is {value}, allowed are {smallest} to {largest}", request.structure));
        }
    }
    let given = |parameter: &ParameterInfo| request.structure_parameters.get(parameter.name).copied();
    let own = known.iter().map(|parameter| (parameter.name.to_owned(), given(parameter).unwrap_or(parameter.default)));
    let batch = match request.reclamation {
        Reclamation::Hyaline { batch } => Some((BATCH_PARAMETER.to_owned(), u64::from(batch))),
        _ => None,
    };
    Ok(own.chain(batch).collect())
}

/// Refuses what no trial can be.
fn validate(request: &Request) -> Result<(), String> {
    /// Most threads of a trial: more would be a mistake of units on any machine, and each takes a stack.
    const THREADS_MAX: usize = 10_000;
    let empty = matches!(
        request.length,
        Length::Nanos(0) | Length::Accounting { operations: 0 } | Length::Operations { operations: 0 }
    );
    let batch = matches!(request.reclamation, Reclamation::Hyaline { batch } if !BATCHES.contains(&batch));
    let faults = [
        (request.cpus.is_empty(), "there are no threads"),
        (request.cpus.len() > THREADS_MAX, "there are more than 10,000 threads"),
        (request.key_range == 0, "the key range is empty"),
        (request.prefill_keys > request.key_range, "the prefill is larger than the key range"),
        (!request.mix.is_whole(), "the shares of the operations do not add up to 10,000"),
        (request.mix.range > 0 && request.range_keys.is_none(), "the range queries have no size"),
        (request.mix.range == 0 && request.range_keys.is_some(), "no operation has the size of range queries"),
        (request.range_keys == Some(0), "the range queries ask for no key"),
        (empty, "the window has no length"),
        (batch, "the batch of hyaline is out of its range"),
    ];
    let fault = faults.into_iter().find(|(found, _)| *found).map(|(_, fault)| fault);
    match fault.or_else(|| request.harness_refusal()) {
        Some(fault) => Err(format!("the request cannot be run: {fault}")),
        None => request.watch.as_ref().map_or(Ok(()), watch::admit),
    }
}

/// Has the nodes managed as asked.
fn manage_nodes(structure: &Structure, asked: Nodes) -> Result<(), String> {
    if !structure.info.memory.honours(asked) {
        return Err(format!("the nodes of `{}` can be neither padded nor pooled", structure.info.name));
    }
    // SAFETY: the process runs one trial, and has made no structure yet.
    unsafe { nodes::configure(asked) }
}

/// Reads the nice level back from the kernel and refuses another than the one asked for.
fn nice_in_effect(asked: i32) -> Result<i32, String> {
    let nice =
        rustix::process::getpriority_process(None).map_err(|error| format!("cannot read the nice level: {error}"))?;
    if nice == asked { Ok(nice) } else { Err(format!("the nice level is {nice}, the request expects {asked}")) }
}

fn reply(request_sha256: String, allocator: AllocatorProof, nice: i32, main_ns: u64, measured: Measurements) -> Reply {
    Reply {
        format: FORMAT,
        request_sha256,
        allocator,
        nice,
        prefill: measured.prefill,
        threads: measured.threads,
        samples: measured.samples,
        audit_before: measured.audit_before,
        audit_after: measured.audit_after,
        memory: measured.memory,
        accounting: measured.accounting,
        layout: measured.layout,
        counters: measured.counters,
        phases: Phases {
            start_ns: measured.threads_started_ns - main_ns,
            audit_ns: measured.audit_ns,
            drop_ns: measured.drop_ns,
        },
    }
}
