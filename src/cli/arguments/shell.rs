//! The arguments of `allclear completion`, and the name of the hidden command behind it.

use clap::ValueEnum;

/// The hidden command that answers what may stand in the place of the last word.
pub(crate) const COMPLETE: &str = "__complete";

/// Shells with a script.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Shell {
    /// With names of the cluster
    Bash,
    /// With names of the cluster
    Zsh,
    /// With names of the cluster
    Fish,
    /// Commands and options alone
    Elvish,
    /// Commands and options alone
    #[value(name = "powershell")]
    Power,
}
