//! Whether a tool is there: what its `--version` answered, read without trust.

use std::path::PathBuf;

/// Why a tool cannot be used, and what to do about it, in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{what}; {advice}")]
pub struct Missing {
    /// What is lacking.
    pub what: String,
    /// What to do.
    pub advice: String,
}

impl Missing {
    pub(super) fn new(what: impl Into<String>, advice: impl Into<String>) -> Self {
        Self { what: what.into(), advice: advice.into() }
    }
}

/// What a tool answered to `--version`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Answer {
    /// Absolute path of the program.
    pub path: PathBuf,
    /// What it printed on its standard output, or why there is nothing, in words.
    pub printed: Result<String, String>,
}

/// Longest piece of a foreign answer that a message repeats, in characters.
const QUOTED_MAX: usize = 60;

/// Finds the path and the version in an answer. The version follows `prefix` at the start of a line.
pub(super) fn version(
    name: &str,
    prefix: &str,
    package: &str,
    answer: Option<&Answer>,
) -> Result<(String, String), Missing> {
    let install = || format!("`apt install {package}`");
    let Some(Answer { path, printed }) = answer else {
        return Err(Missing::new(format!("no `{name}` in PATH"), install()));
    };
    let Some(path) = path.to_str() else {
        return Err(Missing::new(format!("the path of `{name}` is not UTF-8"), install()));
    };
    let odd = |said: String| Missing::new(format!("`{path} --version` {said}"), format!("repair it, or {}", install()));
    let printed = printed.as_ref().map_err(|why| odd(format!("failed: {}", quoted(why))))?;
    let version = printed.lines().find_map(|line| line.trim().strip_prefix(prefix)).map(str::trim);
    let version = version.and_then(|rest| rest.split_whitespace().next()).filter(|word| is_version(word));
    match version {
        Some(version) => Ok((path.to_owned(), version.to_owned())),
        None => Err(odd(format!("printed `{}`, which names no version", quoted(printed)))),
    }
}

/// Tells whether a word begins like a version: a number, a dot, a number.
fn is_version(word: &str) -> bool {
    word.len() <= QUOTED_MAX && word.chars().all(|letter| letter.is_ascii_graphic()) && numbers(word).is_some()
}

/// Returns the first two numbers of a version.
pub(super) fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut parts = version.split(|letter: char| !letter.is_ascii_digit());
    let mut number = || parts.next()?.parse().ok();
    Some((number()?, number()?))
}

/// Returns the first line of a text, short and without control characters.
fn quoted(text: &str) -> String {
    let line = text.trim().lines().next().unwrap_or_default();
    let mut short: String = line.chars().filter(|letter| !letter.is_control()).take(QUOTED_MAX).collect();
    if line.chars().count() > QUOTED_MAX {
        short.push('…');
    }
    short
}

#[cfg(test)]
mod tests {
    use super::*;

    fn answer(printed: Result<&str, &str>) -> Answer {
        Answer { path: "/usr/bin/tool".into(), printed: printed.map(str::to_owned).map_err(str::to_owned) }
    }

    fn check(printed: Result<&str, &str>) -> Result<String, String> {
        let found = version("tool", "tool-", "a-tool", Some(&answer(printed)));
        found.map(|(_, version)| version).map_err(|missing| missing.to_string())
    }

    #[test]
    fn versions_are_found_among_other_lines() {
        assert_eq!(check(Ok("tool-3.19.0\n")).unwrap(), "3.19.0");
        assert_eq!(check(Ok("warning: x\n  tool-3.26.0.GIT (git)\n")).unwrap(), "3.26.0.GIT");
    }

    #[test]
    fn garbage_is_one_clear_line() {
        let long = "x".repeat(1000);
        for odd in ["", "\n", "tool-", "tool-x.y", "tool-3", "other 3.1", "tool-\u{7}3.1", &long] {
            let said = check(Ok(odd)).unwrap_err();
            assert!(said.contains("names no version") && said.contains("apt install a-tool"), "{said}");
            assert!(said.len() < 250 && !said.contains(['\n', '\u{7}']), "{said}");
        }
        assert_eq!(
            check(Err("exit 1: E: no such kernel\nmore")).unwrap_err(),
            "`/usr/bin/tool --version` failed: exit 1: E: no such kernel; repair it, or `apt install a-tool`"
        );
        assert_eq!(
            version("tool", "tool-", "a-tool", None).unwrap_err().to_string(),
            "no `tool` in PATH; `apt install a-tool`"
        );
    }
}
