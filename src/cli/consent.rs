//! Asks before something is written: on a terminal only, where a person can answer.

use std::io::{self, IsTerminal, Write};

use crate::cli::answer::{Outcome, done, refused};
use kernel::text::visible_lines;

/// How a command is allowed to write.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Consent {
    /// Given with `--yes`.
    Given,
    /// To be asked for on the terminal.
    Ask,
    /// So no person can be asked.
    NoTerminal,
}

impl Consent {
    /// By the flag, and by whether there is a terminal to ask on.
    pub fn new(yes: bool) -> Self {
        match (yes, io::stdin().is_terminal() && io::stderr().is_terminal()) {
            (true, _) => Self::Given,
            (false, true) => Self::Ask,
            (false, false) => Self::NoTerminal,
        }
    }

    /// Shows what would be done, on standard error, and asks whether to.
    ///
    /// # Errors
    /// The command ends so: nothing is to be written.
    pub fn ask(self, plan: &str) -> Result<(), Outcome> {
        let _ = io::stderr().write_all(visible_lines(plan).as_bytes());
        match self {
            Self::Given => Ok(()),
            Self::NoTerminal => Err(refused("nothing was changed: there is no terminal to ask on; say --yes to do it")),
            Self::Ask => {
                let _ = io::stderr().write_all(b"Do it? [y/N] ");
                let _ = io::stderr().flush();
                let mut line = String::new();
                let _ = io::stdin().read_line(&mut line);
                match line.trim().to_ascii_lowercase().as_str() {
                    "y" | "yes" => Ok(()),
                    _ => Err(done("nothing was changed\n".to_owned())),
                }
            }
        }
    }
}
