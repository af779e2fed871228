//! The members of the group, and their reports about themselves.
//!
//! ```text
//! configured names, or as many names in beats as there are servers ──▶ pinned in the ledger ──▶ agreed
//! ```
//!
//! No member acts before the members are agreed. Then they stay until further ones come or an operator forgets one (decision 5):
//! losing a server from the configuration is no way to lose a member (decision 56, `pins`). A beat is a report: it names members and
//! explains waiting. Liveness alone never causes a purge, and silence alone never excludes a member.

mod derived;
mod hold;
mod kinds;
mod peer_status;
mod pins;
mod said;
mod settings;
mod trust;
mod twins;

use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

use serde::{Deserialize, Serialize};

use kernel::id::{Member, Origin, config_hash};
use kernel::machine::Timestamp;

use derived::Derived;
pub use hold::{Hold, Reason};
pub use peer_status::{Brought, PeerStatus};
pub use said::{Said, Saying, WORDS_CHARS_MAX};
pub use settings::{difference, settings};
pub use trust::Trust;
use twins::Twin;

/// How long a beat stays: six times the 5 s between two, so a member that lost five of them is still named.
pub const BEAT_TTL: Duration = Duration::from_secs(30);

/// How long a beat speaks for its member. It is left every 5 s and kept for 30 s by a board, and a board is read at least
/// every 6 s.
pub const HEARD_FOR: Duration = Duration::from_secs(40);

/// How long it is remembered that two ledgers report under one name of another member.
const TWINS_FOR: Duration = Duration::from_secs(60);

/// Changes between two ledgers of one name, within [`TWINS_FOR`], that make two clusters of them. A ledger that was
/// re-created changes once, and beats of the old one that were late on some board make it three.
const TURNS_MIN: usize = 4;

/// Names that we remember besides the members'. A group has far fewer; without a key, anyone who can write to a board
/// can invent more.
const STRANGERS_MAX: usize = 100;

/// The setting that names the members; it is not known before they are agreed on.
const MEMBERS: &str = "group.members";

/// The number of the rules the release judges by, among the settings.
const RULES: &str = "rules";

/// A member's report about itself, every few seconds on every board it reaches.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Heartbeat {
    pub member: Member,
    /// Its ledger: it distinguishes two clusters that took one name.
    pub origin: Origin,
    /// One life of its process: which of two beats came first is judged within one life only.
    pub boot: String,
    /// Counts the beats of this life, from 1; 0 in those of older programs, which do not count.
    #[serde(default)]
    pub count: u64,
    pub version: String,
    /// The hash of its configuration, as in its records.
    pub config: String,
    /// The members it agrees with; empty while it does not know them.
    pub members: BTreeSet<Member>,
    /// The settings its configuration hash covers, in words, so that a difference can be named.
    pub settings: BTreeMap<String, String>,
    /// How its rollouts in flight stand.
    #[serde(flatten)]
    pub said: Said,
    /// The workloads that it watches, and where it runs.
    #[serde(flatten)]
    pub stands: Stands,
    /// Milliseconds since the Unix epoch by its own clock, and later than in the beat before. Older programs order by it.
    pub at_ms: i64,
}

/// The workloads that an allclear watches, and where it runs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Stands {
    /// The namespaces it watches; empty: all, or an older program, which does not say.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub watch: BTreeSet<String>,
    /// The kinds of workloads that it follows, which are those it may list, as words: a later release may know more than we do. Empty: an
    /// older program, which does not say, and follows Deployments alone.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub kinds: BTreeSet<String>,
    /// Where it runs, for people: a name that says more than one made from a UID. Empty where it is not known.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub place: String,
}

impl Heartbeat {
    /// Whether it says more than that its member lives and how its rollouts stand: another process or ledger than in the
    /// `earlier` beat, other members, another configuration, other kinds of workloads. The others should hear of that at once.
    pub fn is_news(&self, earlier: Option<&Self>) -> bool {
        let said = |beat: &Self| {
            let kinds = beat.stands.kinds.clone();
            (beat.origin.clone(), beat.boot.clone(), beat.members.clone(), beat.config.clone(), kinds)
        };
        earlier.map(said) != Some(said(self))
    }
}

/// The members as they were agreed on, kept in the ledger.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Pin {
    /// Their names, our own included.
    pub members: BTreeSet<Member>,
    /// The number of servers there were then. When more are configured, the members are learnt anew; when fewer, that is a hold.
    pub of: usize,
    /// Former members that were forgotten, until they are added again. Any other name that is no member is new, and makes us
    /// learn the members anew.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub forgotten: BTreeSet<Member>,
    /// The name of the group these are the members of, where it was derived from the namespaces; empty: it is the configured one.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub group: String,
    /// The servers that have answered once, by address: one that never has may be a mistake, or may hide a member that
    /// we do not wait for. Empty in pins of older programs; then we take all of them as having answered.
    #[serde(default, skip_serializing_if = "BTreeSet::is_empty")]
    pub answered: BTreeSet<String>,
}

/// The group's servers, as far as they have said who they are.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Servers {
    pub distinct: usize,
    /// Those that have said so, by address.
    pub identified: BTreeSet<String>,
    /// Those that have not said so, by address.
    pub unidentified: BTreeSet<String>,
    /// Why they have not, by address, as far as that is known.
    pub reasons: BTreeMap<String, String>,
    /// Not all of them have been asked yet.
    pub untried: bool,
}

impl Servers {
    /// Whether none is configured.
    fn is_none(&self) -> bool {
        self.distinct == 0 && self.unidentified.is_empty()
    }

    /// Whether there may be this many.
    fn may_be(&self, number: usize) -> bool {
        (self.distinct..=self.most()).contains(&number)
    }

    /// How many members there may be at most: where no server is configured, ourselves.
    fn most(&self) -> usize {
        (self.distinct + self.unidentified.len()).max(1)
    }
}

/// The members, or the reason why they are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Standing {
    /// The members; while there is a hold, all that are known.
    pub members: BTreeSet<Member>,
    /// Why nothing may be done.
    pub hold: Option<Hold>,
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
    peers: BTreeMap<Member, PeerStatus>,
    /// Another ledger under our own name.
    twin: Option<Twin>,
    /// The configuration names our own Redis and no other one.
    only_own: bool,
    /// The group whose name was derived, and what is known of the one called `default`.
    derived: Option<Derived>,
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
        Self {
            own,
            origin,
            configured,
            settings,
            pin,
            peers: BTreeMap::new(),
            twin: None,
            only_own: false,
            derived: None,
        }
    }

    /// Takes in a beat of another member, from this board.
    pub fn hear(&mut self, now: Timestamp, board: usize, beat: Heartbeat) -> Brought {
        if let Some(peer) = self.peers.get_mut(&beat.member) {
            return peer.hear(now, board, beat);
        }
        self.peers.insert(beat.member.clone(), PeerStatus::new(now, board, beat));
        self.limit();
        Brought::Ledger
    }

    /// Forgets the strangers whose last beat is oldest, beyond [`STRANGERS_MAX`].
    fn limit(&mut self) {
        let is_ours = |name: &Member| {
            self.configured.contains(name) || self.pin.as_ref().is_some_and(|pin| pin.members.contains(name))
        };
        let mut strangers: Vec<(Timestamp, Member)> =
            self.peers.iter().filter(|(name, _)| !is_ours(name)).map(|(name, peer)| (peer.at, name.clone())).collect();
        strangers.sort();
        let excess = strangers.len().saturating_sub(STRANGERS_MAX);
        strangers.iter().take(excess).for_each(|(_, name)| drop(self.peers.remove(name)));
    }

    /// Takes in what the ledger holds.
    pub fn pinned(&mut self, pin: Option<Pin>) {
        self.pin = pin;
    }

    /// The pin that the ledger is known to hold.
    pub fn pin(&self) -> Option<&Pin> {
        self.pin.as_ref()
    }

    /// The state of another member.
    pub fn peer(&self, member: &Member) -> Option<&PeerStatus> {
        self.peers.get(member)
    }

    /// Every peer whose beat was ever read here.
    pub fn peers(&self) -> impl Iterator<Item = (&Member, &PeerStatus)> {
        self.peers.iter()
    }

    /// Our own settings, the members included.
    pub fn settings(&self) -> BTreeMap<String, String> {
        let members = self.pin.as_ref().map_or_else(|| "not known yet".to_owned(), |pin| listed(&pin.members));
        let mut settings = self.settings.clone();
        settings.insert(MEMBERS.to_owned(), members);
        settings
    }

    /// The members, or the reason why they are not known.
    pub fn standing(&self, now: Timestamp, servers: &Servers) -> Standing {
        let known = || self.known(now, servers).into_iter().chain(self.configured.iter().cloned()).collect();
        let members = self.pin.as_ref().map_or_else(known, |pin| pin.members.clone());
        let settings = self.settings();
        let pairs = settings.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Standing { members, hold: self.hold(now, servers), config: config_hash(pairs) }
    }

    /// The settings in which a member differs from us; empty if none, or if it never left a beat.
    pub fn differences(&self, member: &Member) -> Vec<String> {
        let Some(PeerStatus { beat, .. }) = self.peers.get(member) else { return Vec::new() };
        let ours = self.settings();
        let differences = difference(&beat.settings, &ours);
        let agrees = config_hash(ours.iter().map(|(name, value)| (name.as_str(), value.as_str()))) == beat.config;
        if differences.is_empty() && !agrees {
            return vec![format!("its version {} knows other settings", beat.version)];
        }
        differences
    }

    /// The remedy for the differences to a member, if there are any.
    pub fn cure(&self, member: &Member) -> Option<String> {
        let beat = &self.peers.get(member).filter(|_| !self.differences(member).is_empty())?.beat;
        let ours = self.settings();
        let differ = |name: &str| beat.settings.get(name) != ours.get(name);
        let rules =
            |settings: &BTreeMap<String, String>| settings.get(RULES).and_then(|rules| rules.parse::<u32>().ok());
        if differ(RULES) {
            let older = if rules(&beat.settings) < rules(&ours) { member } else { &self.own };
            return Some(format!("upgrade allclear in {older}: its release judges by older rules"));
        }
        let names = beat.settings.keys().chain(ours.keys()).filter(|name| differ(name) && *name != MEMBERS);
        let names: BTreeSet<&str> = names.map(String::as_str).collect();
        if !names.is_empty() {
            let names = names.into_iter().collect::<Vec<_>>().join(", ");
            return Some(format!(
                "give {names} one value in {member} and in {}, and restart what was changed",
                self.own
            ));
        }
        if !differ(MEMBERS) {
            return Some(format!("run one version of allclear in {member} and in {}", self.own));
        }
        let (theirs, pin) = (&beat.members, self.pin.as_ref()?);
        let left = listed(&theirs.intersection(&pin.forgotten).cloned().collect());
        Some(match () {
            () if theirs.is_empty() => {
                format!("{member} does not know the members yet; allclear group show there says why")
            }
            () if !left.is_empty() => format!("run allclear group forget {left} in {member} too"),
            () if !theirs.contains(&self.own) => format!(
                "{member} does not count this cluster among its members: if it was forgotten there, run allclear group add \
                 {0} there to have it back, or stop allclear here",
                self.own
            ),
            () => {
                format!(
                    "give {member} and {} the same servers in redis.url and group.remotes, and the same group.members; \
                         one of them may still have to forget a member",
                    self.own
                )
            }
        })
    }

    /// How long, roughly, a member has been silent; `None` if its last beat is recent.
    pub fn silence(&self, now: Timestamp, member: &Member) -> Option<String> {
        let Some(peer) = self.peers.get(member) else {
            return Some("has left no report that was read here".to_owned());
        };
        let silent = now.since(peer.at);
        (silent > HEARD_FOR).then(|| format!("has not been heard from for {}", roughly(silent)))
    }
}

pub fn listed(members: &BTreeSet<Member>) -> String {
    members.iter().map(|member| member.0.as_str()).collect::<Vec<_>>().join(", ")
}

/// A duration in one of few steps, so that what is said of it seldom changes.
fn roughly(time: Duration) -> String {
    let steps = [(86_400, "a day"), (3_600, "an hour"), (600, "10 minutes"), (300, "5 minutes"), (60, "a minute")];
    let step = steps.iter().find(|(seconds, _)| time.as_secs() >= *seconds);
    step.map_or_else(|| format!("more than {} s", HEARD_FOR.as_secs()), |(_, words)| format!("more than {words}"))
}

#[cfg(test)]
mod tests;
