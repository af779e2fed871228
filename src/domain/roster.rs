//! Who the members of the group are, and what they tell of themselves.
//!
//! ```text
//! configured names, or as many heard names as there are servers ──▶ pinned in the ledger ──▶ agreed
//! ```
//!
//! Nobody acts before the members are agreed, and then they stay until the number of servers changes or somebody forgets one
//! (decision 5). A beat is a report: it names members and explains waiting. That a member is alive is never a reason to
//! purge, and that it is silent never one to go on without it.

mod settings;
mod voice;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::domain::id::{Member, Origin, WorkloadId, config_hash};
use crate::domain::machine::Timestamp;

pub use settings::{difference, settings};
pub use voice::{Brought, Voice};

/// How long a beat speaks for its member. It is left every 5 s and kept for 30 s by a board, and a board is read at least
/// every 6 s.
pub const HEARD_FOR: Duration = Duration::from_secs(40);

/// How long a second cluster of one name is remembered after it was last noticed.
const TWINS_FOR: Duration = Duration::from_secs(60);

/// Changes between two ledgers of one name, within [`TWINS_FOR`], that make two clusters of them. A ledger that was
/// re-created changes once, and beats of the old one that were late on some board make it three.
const TURNS_MIN: usize = 4;

/// Names that are remembered beside the members'. A group has far fewer; without a key anybody who writes to a board can
/// make up more.
const STRANGERS_MAX: usize = 100;

/// The setting that names the members; it is not known before they are agreed on.
const MEMBERS: &str = "group.members";

/// What a member tells of itself every few seconds, on every board it reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Beat {
    /// Its name.
    pub member: Member,
    /// Its ledger: two clusters that took one name are told apart by it.
    pub origin: Origin,
    /// One life of its process: which of two beats came first is judged within one life only.
    pub boot: String,
    /// Counts the beats of this life, from 1; 0 in those of older programs, which do not count.
    #[serde(default)]
    pub count: u64,
    /// The program's version.
    pub version: String,
    /// The hash of its configuration, as in its records.
    pub config: String,
    /// The members it agrees with; empty while it does not know them.
    pub members: BTreeSet<Member>,
    /// The settings its configuration hash covers, in words, so that a difference can be named.
    pub settings: BTreeMap<String, String>,
    /// How its rollouts in flight stand, in words.
    pub words: BTreeMap<WorkloadId, String>,
    /// Milliseconds since the Unix epoch by its own clock, and later than in the beat before. Older programs order by it.
    pub at_ms: i64,
}

impl Beat {
    /// Whether it says more than that its member lives and how its rollouts stand: another process or ledger than in the
    /// `earlier` beat, other members, another configuration. The others should hear of that at once.
    pub fn is_news(&self, earlier: Option<&Self>) -> bool {
        let said = |beat: &Self| (beat.origin.clone(), beat.boot.clone(), beat.members.clone(), beat.config.clone());
        earlier.map(said) != Some(said(self))
    }
}

/// The members as they were agreed on, kept in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pin {
    /// Their names, our own included.
    pub members: BTreeSet<Member>,
    /// The number of servers there were then. When another number is configured, the members are learnt anew.
    pub of: usize,
    /// Who was a member then and was forgotten since. Whoever is neither this nor a member is new, and the members are
    /// learnt anew.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub forgotten: BTreeSet<Member>,
}

/// The group's servers, as far as they have said who they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Servers {
    /// Different ones.
    pub distinct: usize,
    /// Those that have not said so, by address.
    pub unidentified: BTreeSet<String>,
    /// Not all of them have been asked yet.
    pub untried: bool,
}

impl Servers {
    /// Whether there may be this many.
    fn may_be(&self, number: usize) -> bool {
        (self.distinct..=self.distinct + self.unidentified.len()).contains(&number)
    }
}

/// Who the members are, or why that is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The members; while there is a hold, whoever is known.
    pub members: BTreeSet<Member>,
    /// Why nothing may be done.
    pub hold: Option<String>,
    /// The hash of our configuration, the members included.
    pub config: String,
}

/// The register of members. See the module's text.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Roster {
    own: Member,
    origin: Origin,
    configured: BTreeSet<Member>,
    settings: BTreeMap<String, String>,
    pin: Option<Pin>,
    voices: BTreeMap<Member, Voice>,
    /// Another ledger under our own name, and when it was noticed.
    twin: Option<(Origin, Timestamp)>,
}

impl Roster {
    /// The roster of `own`, whose ledger is `origin`. `configured` is empty where the members are to be learnt; `settings`
    /// are those that must be the same in all members, and `pin` is what the ledger holds.
    pub fn new(
        own: Member,
        origin: Origin,
        configured: BTreeSet<Member>,
        settings: BTreeMap<String, String>,
        pin: Option<Pin>,
    ) -> Self {
        Self { own, origin, configured, settings, pin, voices: BTreeMap::new(), twin: None }
    }

    /// Takes in a beat of another member, from this board.
    pub fn hear(&mut self, now: Timestamp, board: usize, beat: Beat) -> Brought {
        if let Some(voice) = self.voices.get_mut(&beat.member) {
            return voice.hear(now, board, beat);
        }
        self.voices.insert(beat.member.clone(), Voice::new(now, board, beat));
        self.limit();
        Brought::Ledger
    }

    /// Forgets the strangers that were heard of longest ago, beyond [`STRANGERS_MAX`].
    fn limit(&mut self) {
        let is_ours = |name: &Member| {
            self.configured.contains(name) || self.pin.as_ref().is_some_and(|pin| pin.members.contains(name))
        };
        let mut strangers: Vec<(Timestamp, Member)> = self
            .voices
            .iter()
            .filter(|(name, _)| !is_ours(name))
            .map(|(name, voice)| (voice.at, name.clone()))
            .collect();
        strangers.sort();
        let excess = strangers.len().saturating_sub(STRANGERS_MAX);
        strangers.iter().take(excess).for_each(|(_, name)| drop(self.voices.remove(name)));
    }

    /// Takes in a beat of our own name that was found where we had left ours before.
    pub fn hear_own(&mut self, now: Timestamp, beat: &Beat) {
        if beat.origin != self.origin {
            self.twin = Some((beat.origin.clone(), now));
        }
    }

    /// Takes in what the ledger holds.
    pub fn pinned(&mut self, pin: Option<Pin>) {
        self.pin = pin;
    }

    /// What the ledger is known to hold.
    pub fn pin(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }

    /// What is known of another member.
    pub fn voice(&self, member: &Member) -> Option<&Voice> {
        self.voices.get(member)
    }

    /// Everybody who was ever heard of.
    pub fn voices(&self) -> impl Iterator<Item = (&Member, &Voice)> {
        self.voices.iter()
    }

    /// Our own settings, the members included.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let members = self.pin.as_ref().map_or_else(|| "not known yet".to_owned(), |pin| listed(&pin.members));
        let mut settings = self.settings.clone();
        settings.insert(MEMBERS.to_owned(), members);
        settings
    }

    /// What is to be stored in the ledger over [`Roster::pin`], if anything.
    pub fn wanted_pin(&self, now: Timestamp, servers: &Servers) -> Option<Pin> {
        if servers.untried || self.twins(now).is_some() || self.usable_pin(now, servers).is_some() {
            return None;
        }
        let mut known = self.known(now);
        known.extend(self.fitting_pin(servers).into_iter().flat_map(|pin| pin.members.clone()));
        if !self.configured.is_empty() {
            let of = self.configured.len();
            let fits = self.configured.contains(&self.own) && servers.may_be(of);
            return (fits && known.is_subset(&self.configured)).then(|| Pin {
                members: self.configured.clone(),
                of,
                ..Pin::default()
            });
        }
        let complete = servers.unidentified.is_empty() && known.len() == servers.distinct;
        complete.then_some(Pin { members: known, of: servers.distinct, ..Pin::default() })
    }

    /// Who the members are, or why that is not known.
    pub fn standing(&self, now: Timestamp, servers: &Servers) -> Standing {
        let known = || self.known(now).into_iter().chain(self.configured.iter().cloned()).collect();
        let members = self.pin.as_ref().map_or_else(known, |pin| pin.members.clone());
        let settings = self.settings();
        let pairs = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Standing { members, hold: self.hold(now, servers), config: config_hash(pairs) }
    }

    /// In which settings a member differs from us; empty where it does not, or is not heard of.
    pub fn differences(&self, member: &Member) -> Vec<String> {
        let Some(Voice { beat, .. }) = self.voices.get(member) else { return Vec::new() };
        let ours = self.settings();
        let differences = difference(&beat.settings, &ours);
        let agrees = config_hash(ours.iter().map(|(name, value)| (name.as_str(), value.as_str()))) == beat.config;
        if differences.is_empty() && !agrees {
            return vec![format!("its version {} knows other settings", beat.version)];
        }
        differences
    }

    /// Since when, roughly, nothing has been heard of a member; `None` if it was heard of just now.
    pub fn silence(&self, now: Timestamp, member: &Member) -> Option<String> {
        let Some(voice) = self.voices.get(member) else { return Some("has not been heard of yet".to_owned()) };
        let silent = now.since(voice.at);
        (silent > HEARD_FOR).then(|| format!("has not been heard of for {}", roughly(silent)))
    }

    /// Ourselves and whoever was heard of lately.
    fn known(&self, now: Timestamp) -> BTreeSet<Member> {
        let heard = self.voices.iter().filter(|(_, voice)| now.since(voice.at) <= HEARD_FOR);
        heard.map(|(member, _)| member.clone()).chain([self.own.clone()]).collect()
    }

    /// The pin, where it still fits what is configured and nobody is heard of, or configured, who was left out of it without
    /// being forgotten.
    fn usable_pin(&self, now: Timestamp, servers: &Servers) -> Option<&Pin> {
        let known = self.known(now);
        self.fitting_pin(servers).filter(|pin| {
            let mut others = known.iter().chain(&self.configured);
            others.all(|member| pin.members.contains(member) || pin.forgotten.contains(member))
        })
    }

    /// The pin, where it still fits what is configured. Its members are waited for, whoever comes beside them.
    fn fitting_pin(&self, servers: &Servers) -> Option<&Pin> {
        let Self { own, configured, pin, .. } = self;
        pin.as_ref().filter(|pin| {
            pin.members.contains(own)
                && servers.may_be(pin.of)
                && (configured.is_empty() || pin.members.is_subset(configured))
        })
    }

    /// Two clusters that took one name.
    fn twins(&self, now: Timestamp) -> Option<String> {
        let (name, ledgers) = match &self.twin {
            Some((other, at)) if now.since(*at) <= TWINS_FOR => (&self.own, vec![&self.origin, other]),
            Some(_) | None => self.voices.values().find_map(|voice| Some((&voice.beat.member, voice.twins(now)?)))?,
        };
        let ledgers: Vec<_> = ledgers.iter().map(|origin| origin.to_string()).collect();
        Some(format!(
            "two clusters of the group are called {name} (ledgers {}); give one of them another name by group.member",
            ledgers.join(" and ")
        ))
    }

    fn hold(&self, now: Timestamp, servers: &Servers) -> Option<String> {
        let Self { own, configured, .. } = self;
        if let Some(twins) = self.twins(now) {
            return Some(twins);
        }
        if !configured.is_empty() && !configured.contains(own) {
            return Some(format!("group.members does not name this cluster, {own}, but {}", listed(configured)));
        }
        if servers.untried {
            return Some("the group's servers are being asked who they are".to_owned());
        }
        let most = servers.distinct + servers.unidentified.len();
        let pin = self.fitting_pin(servers);
        let counted = match pin {
            Some(pin) => &pin.members,
            None => configured,
        };
        let all: BTreeSet<Member> = self.known(now).union(counted).cloned().collect();
        if all.len() > most {
            let retired = match pin {
                None if !configured.is_empty() => {
                    ", and a member that has retired must be taken out of group.members too"
                }
                None | Some(_) => "",
            };
            return Some(format!(
                "more members than servers: {}, and {most} different servers are configured; each cluster's own Redis \
                 must be in redis.url or group.remotes of all of them{retired}",
                listed(&all)
            ));
        }
        if self.usable_pin(now, servers).is_some() {
            return None;
        }
        Some(self.unpinned(&all, servers))
    }

    /// Why there is no usable pin.
    fn unpinned(&self, known: &BTreeSet<Member>, servers: &Servers) -> String {
        let Self { configured, .. } = self;
        let least = servers.distinct;
        if !configured.is_empty() && configured.len() < least {
            return format!(
                "group.members names {} members ({}), and {least} different servers are configured; each member has one",
                configured.len(),
                listed(configured)
            );
        }
        if configured.is_empty() && !servers.unidentified.is_empty() {
            let silent: Vec<&str> = servers.unidentified.iter().map(String::as_str).collect();
            return format!(
                "it is not known how many members the group has: {} has not said which server it is; known are {}",
                silent.join(", "),
                listed(known)
            );
        }
        if configured.is_empty() && known.len() < servers.distinct {
            let missing = match (servers.distinct - known.len(), servers.distinct) {
                (1, 2) => "the second has not been heard of".to_owned(),
                (1, 3) => "the third has not been heard of".to_owned(),
                (1, n) => format!("the {n}th has not been heard of"),
                (n, _) => format!("{n} have not been heard of"),
            };
            return format!("{} of {} members are known: {}; {missing}", known.len(), servers.distinct, listed(known));
        }
        "the members are being written to the ledger".to_owned()
    }
}

/// Names, for people.
pub fn listed(members: &BTreeSet<Member>) -> String {
    members.iter().map(|member| member.0.as_str()).collect::<Vec<_>>().join(", ")
}

/// A duration in one of few steps, so that what is said of it seldom changes.
fn roughly(time: Duration) -> String {
    let steps = [(86_400, "a day"), (3_600, "an hour"), (600, "10 minutes"), (300, "5 minutes"), (60, "a minute")];
    let step = steps.iter().find(|(seconds, _)| time.as_secs() >= *seconds);
    step.map_or_else(|| format!("{} s", HEARD_FOR.as_secs()), |(_, words)| format!("more than {words}"))
}

#[cfg(test)]
mod tests;
