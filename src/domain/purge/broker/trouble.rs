//! The troubles of the group and its boards, as values. A page that shows one beside the board or the member it is
//! about leaves it out of its list of troubles.

use std::fmt;

/// Something a person should know of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// A board does not work: why.
    Board(String),
    /// The group is held up: the words of the hold.
    Hold(String),
    /// The settings of a member differ from ours.
    Difference {
        member: String,
        /// A sentence for each setting.
        differences: Vec<String>,
        /// The remedy for them.
        cure: Option<String>,
    },
    /// A trouble that is shown nowhere else.
    Other(String),
}

impl fmt::Display for Trouble {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Board(why) | Self::Other(why) => f.write_str(why),
            Self::Hold(words) => write!(f, "nothing is purged: {words}"),
            Self::Difference { member, differences, cure } => {
                let differences = differences.join("; ");
                write!(f, "{member} has another configuration, so nothing is agreed on with it: {differences}")?;
                cure.iter().try_for_each(|cure| write!(f, "; {cure}"))
            }
        }
    }
}
