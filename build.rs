//! Records how this build was made, for `src/host/build.rs`.
//!
//! Each fact becomes one `RARE_BUILD_*` variable of the compiler. A fact that cannot be had is a text that begins with
//! `?` and says why: a build without git, or from an archive, must succeed. Nothing here depends on the time of day.

use std::{
    env, fs,
    io::Write,
    path::Path,
    process::{Command, Stdio},
};

/// What the binaries are made from. A change of any of these builds anew, so that commit and dirtiness stay true.
const SOURCES: [&str; 8] =
    ["src", "workloads", "templates", "build.rs", "Cargo.toml", "Cargo.lock", "clippy.toml", ".cargo/config.toml"];

fn main() {
    watch();
    fact("RUSTC", rustc());
    fact("TARGET", variable("TARGET"));
    fact("HOST", variable("HOST"));
    fact("FLAGS", flags());
    fact("FEATURES", variable("CARGO_CFG_TARGET_FEATURE"));
    fact("OPT_LEVEL", variable("OPT_LEVEL"));
    fact("PROFILE", variable("PROFILE"));
    fact("DEBUG_INFO", variable("DEBUG"));
    fact("DEBUG_ASSERTIONS", Ok(if env::var_os("CARGO_CFG_DEBUG_ASSERTIONS").is_some() { "on" } else { "off" }.into()));
    fact("PANIC", variable("CARGO_CFG_PANIC"));
    fact("PROFILE_SETTINGS", profile_settings());
    fact("LINKER", linker());
    fact("C_COMPILER", run("cc", &["--version"]).map(|text| text.lines().next().unwrap_or_default().to_owned()));
    fact("COMMIT", git(&["rev-parse", "HEAD"]));
    fact("BRANCH", git(&["rev-parse", "--abbrev-ref", "HEAD"]));
    fact("CHANGES", changes());
    fact("SUBMODULES", git(&["submodule", "status"]).map(|text| if text.is_empty() { "none".into() } else { text }));
}

/// Names what builds anew. The index is not among it: `git status` rewrites it, and dirtiness follows from the sources.
fn watch() {
    let git_files = ["HEAD", "logs/HEAD"].iter().filter_map(|file| git(&["rev-parse", "--git-path", file]).ok());
    for path in SOURCES.iter().map(|path| (*path).to_owned()).chain(git_files) {
        // A watched path that does not exist would build anew each time.
        if Path::new(&path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
    for name in ["CC", "CFLAGS"] {
        println!("cargo::rerun-if-env-changed={name}");
    }
}

fn fact(name: &str, told: Result<String, String>) {
    let text = told.unwrap_or_else(|reason| format!("?{reason}"));
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    println!("cargo::rustc-env=RARE_BUILD_{name}={}", if text.is_empty() { "?it is empty".into() } else { text });
}

fn variable(name: &str) -> Result<String, String> {
    env::var(name).map_err(|_| format!("cargo did not set {name}"))
}

fn rustc() -> Result<String, String> {
    let rustc = variable("RUSTC")?;
    let text = run(&rustc, &["-vV"])?;
    Ok(text.lines().collect::<Vec<_>>().join("; "))
}

/// The flags that cargo gives to every compilation; it separates them by the unit separator.
fn flags() -> Result<String, String> {
    let flags = variable("CARGO_ENCODED_RUSTFLAGS")?;
    Ok(if flags.is_empty() { "none".into() } else { flags.replace('\x1f', " ") })
}

/// The settings of the profile as `Cargo.toml` and the environment make them; what neither names is cargo's default.
fn profile_settings() -> Result<String, String> {
    let profile = variable("PROFILE")?;
    // Cargo tells `debug` for the profile that is called `dev`.
    let section = if profile == "debug" { "dev" } else { &profile };
    let manifest = fs::read_to_string("Cargo.toml").map_err(|error| format!("cannot read Cargo.toml: {error}"))?;
    let inside = manifest.lines().map(str::trim).skip_while(|line| *line != format!("[profile.{section}]")).skip(1);
    let mut settings: Vec<String> = inside
        .take_while(|line| !line.starts_with('['))
        .filter(|line| !line.is_empty() && !line.starts_with('#'))
        .map(str::to_owned)
        .collect();
    let prefix = format!("CARGO_PROFILE_{}_", section.to_uppercase());
    settings.extend(
        env::vars().filter(|(name, _)| name.starts_with(&prefix)).map(|(name, value)| format!("{name}={value}")),
    );
    Ok(if settings.is_empty() { "cargo's defaults".into() } else { settings.join(", ") })
}

fn linker() -> Result<String, String> {
    let linker = env::var("RUSTC_LINKER").unwrap_or_else(|_| "cc".into());
    let version = run(&linker, &["-Wl,--version"]).or_else(|_| run(&linker, &["--version"]))?;
    Ok(format!("{linker}: {}", version.lines().next().unwrap_or("it tells no version")))
}

/// How the sources differ from the commit: a count, and a digest of the difference.
fn changes() -> Result<String, String> {
    let mut status = vec!["--no-optional-locks", "status", "--porcelain", "--"];
    status.extend(SOURCES);
    let changed = git(&status)?;
    if changed.is_empty() {
        return Ok("none".into());
    }
    let mut difference = vec!["--no-optional-locks", "diff", "HEAD", "--"];
    difference.extend(SOURCES);
    let digest = git(&difference).and_then(|difference| git_digest(&difference));
    Ok(format!("{} files, git digest of the difference {}", changed.lines().count(), digest?))
}

fn git_digest(text: &str) -> Result<String, String> {
    let mut git = Command::new("git");
    let git = git.args(["hash-object", "--stdin"]).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = git.spawn().map_err(|error| format!("cannot run git: {error}"))?;
    let mut input = child.stdin.take().ok_or("git has no input")?;
    input.write_all(text.as_bytes()).map_err(|error| format!("cannot write to git: {error}"))?;
    drop(input);
    let output = child.wait_with_output().map_err(|error| format!("cannot run git: {error}"))?;
    Ok(String::from_utf8_lossy(&output.stdout).trim().to_owned())
}

/// Asks git about the folder of this package only: sources unpacked inside another repository are not that one's.
fn git(arguments: &[&str]) -> Result<String, String> {
    if !Path::new(".git").exists() {
        return Err("not a git checkout".into());
    }
    run("git", arguments)
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let output =
        Command::new(program).args(arguments).output().map_err(|error| format!("cannot run {program}: {error}"))?;
    match output.status.success() {
        true => Ok(String::from_utf8_lossy(&output.stdout).trim_end().to_owned()),
        false => Err(format!("{program} failed: {}", String::from_utf8_lossy(&output.stderr).trim())),
    }
}
