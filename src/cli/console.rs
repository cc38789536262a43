//! Where a command prints: results to standard output, everything else to standard error.
//!
//! A reader that goes away (`rare plan … | head`) is no error; a full disk is. Names come from specs, plans and file
//! systems that others wrote: text for people reaches the terminal without control characters.

use std::{
    cell::RefCell,
    fmt::Display,
    io::{self, IsTerminal, Write},
};

use super::exit::{Exit, Failure};
use crate::diag;

/// The two streams and how to write to them.
pub struct Console {
    /// No progress, only results and errors.
    pub quiet: bool,
    /// Whether standard error is a terminal that may be redrawn.
    pub interactive: bool,
    /// Whether standard error may carry colour.
    pub color: bool,
    output_error: RefCell<Option<io::Error>>,
}

impl Console {
    /// Looks at the streams and at `NO_COLOR`.
    pub fn new(quiet: bool) -> Self {
        let terminal = io::stderr().is_terminal();
        let dumb = std::env::var_os("TERM").is_some_and(|term| term == "dumb");
        let no_color = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
        Self {
            quiet,
            interactive: terminal && !dumb && !quiet,
            color: terminal && !dumb && !no_color,
            output_error: RefCell::new(None),
        }
    }

    /// Writes to standard output what programs read, as it is.
    pub fn write(&self, text: impl Display) {
        let mut output = io::stdout().lock();
        let written = write!(output, "{text}").and_then(|()| output.flush());
        if let Err(error) = written
            && error.kind() != io::ErrorKind::BrokenPipe
        {
            self.output_error.borrow_mut().get_or_insert(error);
        }
    }

    /// Writes to standard output what people read: one line or several.
    pub fn line(&self, text: impl Display) {
        self.write(format_args!("{}\n", printable(&text.to_string())));
    }

    /// Writes to standard error unless quiet. A lost note is not worth a failure.
    pub fn note(&self, text: impl Display) {
        if !self.quiet {
            self.alert(text);
        }
    }

    /// Writes to standard error, even when quiet.
    pub fn alert(&self, text: impl Display) {
        self.styled(printable(&text.to_string()));
    }

    /// Writes diagnostics to standard error: they bring their own colours and are printable already.
    pub fn diagnostics(&self, diagnostics: &[diag::Diagnostic], source: &diag::Source) {
        self.styled(diag::render(diagnostics, source, self.color).trim_end());
    }

    /// Writes a failure to standard error.
    pub fn failure(&self, failure: &Failure) {
        let (bold, plain) = if self.color { ("\x1b[1;31m", "\x1b[0m") } else { ("", "") };
        self.styled(format_args!("{bold}error{plain}: {}", printable(&failure.what)));
        for line in &failure.help {
            self.alert(format_args!("  = help: {line}"));
        }
    }

    fn styled(&self, text: impl Display) {
        let _ = writeln!(io::stderr().lock(), "{text}");
    }

    /// Tells whether standard output took everything.
    ///
    /// # Errors
    /// [`Exit::Store`] when writing failed for another reason than a reader that went away.
    pub fn finish(&self) -> Result<(), Failure> {
        match self.output_error.borrow_mut().take() {
            None => Ok(()),
            Some(error) => Err(output_failure(&error)),
        }
    }
}

/// Standard output took less than everything.
pub(super) fn output_failure(error: &io::Error) -> Failure {
    Failure::new(Exit::Store, format!("cannot write to standard output: {error}"))
        .help("what was measured is in the store; send the output somewhere else")
}

/// Returns text without anything that acts on a terminal, but for its line breaks.
fn printable(text: &str) -> String {
    text.trim_end().split('\n').map(diag::one_line).collect::<Vec<_>>().join("\n")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_acts_on_a_terminal() {
        assert_eq!(printable("a\x1b[31m\n  b\r\u{202e}\n"), "a␛[31m\n  b␍\u{fffd}");
    }
}
