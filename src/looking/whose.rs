//! The configuration behind an answer (decision 64): that of the running controller, as stored beside its ledger, or,
//! where that cannot be read, the one that this command was given.

use std::fmt;

use serde::{Serialize, Serializer};

use crate::adapters::kubernetes::Clients;
use crate::adapters::ledger::kubernetes::KubernetesLedger;
use crate::config::{Config, InForce, Invalid, LedgerBackend, Loaded};
use crate::looking::page::time;
use crate::looking::{ledger_namespace, ledger_place};
use purge::ports::Ledger;

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Whose {
    Controllers {
        /// The version of the program that wrote it.
        version: String,
        /// When it did, in milliseconds since the Unix epoch.
        at_ms: i64,
        /// The keys that are this command's all the same.
        left_out: Vec<String>,
    },
    /// This command's, and why.
    Own(String),
    /// Those that were named, on purpose; and the keys that the running controller has otherwise, where it left its own.
    Given(Option<Vec<String>>),
    /// The controller itself answers.
    Itself,
}

impl fmt::Display for Whose {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Itself => f.write_str("those of the running allclear"),
            Self::Controllers { version, at_ms, left_out } => {
                write!(f, "those of allclear {version}, as it left them at {}", time(*at_ms))?;
                if left_out.is_empty() { Ok(()) } else { write!(f, "; of this command: {}", left_out.join(", ")) }
            }
            Self::Given(None) => f.write_str("those that were given; allclear has left none of its own yet"),
            Self::Given(Some(other)) if other.is_empty() => {
                f.write_str("those that were given, which the running allclear has too")
            }
            Self::Given(Some(other)) => {
                write!(f, "those that were given; the running allclear has other values of {}", other.join(", "))
            }
            Self::Own(why) => write!(f, "those of this command, which may not be the controller's: {why}"),
        }
    }
}

impl Serialize for Whose {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl Whose {
    /// What a person has to know of it; nothing where the controller itself answers.
    pub fn line(&self) -> Option<String> {
        (*self != Self::Itself).then(|| self.to_string())
    }

    /// What a person has to know where it is not the controller's.
    pub fn doubt(&self) -> Option<String> {
        matches!(self, Self::Own(_)).then(|| format!("settings: {self}"))
    }
}

/// Why the settings in force are not known, where a text is there.
const UNREADABLE: &str = "what allclear wrote of its settings cannot be read";

/// What the running controller left of its settings, beside the ledger that this configuration names.
///
/// # Errors
/// Why that cannot be read, in words.
async fn left(config: &Config, clients: &Clients) -> Result<Option<InForce>, String> {
    if config.ledger_backend() == LedgerBackend::Memory {
        return Err("a ledger in memory is with its process alone".to_owned());
    }
    let ledger = KubernetesLedger::new(clients.request.clone(), ledger_namespace(config));
    let text = ledger.in_force().await.map_err(|error| error.to_string())?;
    text.map(|text| InForce::parse(&text).map_err(|_| UNREADABLE.to_owned())).transpose()
}

/// How the settings in force differ from those that were given, which count.
pub(crate) async fn beside(given: &Loaded, clients: &Clients) -> Whose {
    match left(&given.config, clients).await {
        Ok(Some(there)) => {
            Whose::Given(Some(there.differing(&given.in_force).into_iter().map(str::to_owned).collect()))
        }
        Ok(None) => Whose::Given(None),
        Err(why) => Whose::Own(why),
    }
}

/// The settings in force, put above those that were loaded, and whose they are now.
pub(crate) async fn in_force(
    loaded: Loaded,
    clients: &Clients,
    reload: impl Fn(&InForce) -> Result<Loaded, Invalid>,
) -> (Loaded, Whose) {
    let note = match left(&loaded.config, clients).await {
        Ok(Some(note)) => note,
        Ok(None) => {
            let place = ledger_place(&loaded.config, ledger_namespace(&loaded.config));
            return (loaded, Whose::Own(format!("allclear has left none in {place}")));
        }
        Err(why) => return (loaded, Whose::Own(why)),
    };
    match reload(&note) {
        Ok(reloaded) => {
            let InForce { version, at_ms, settings: _, left_out } = note;
            (reloaded, Whose::Controllers { version, at_ms, left_out })
        }
        Err(Invalid { problems, .. }) => {
            let first =
                problems.first().map(|problem| format!("{}: {}", problem.key, problem.message)).unwrap_or_default();
            (loaded, Whose::Own(format!("the two do not go together ({first})")))
        }
    }
}
