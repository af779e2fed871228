//! Reads the group as a running allclear does, once, and without a trace: every board is asked who it is and read to
//! its end, and the broker's own machine combines the answers. Nothing is posted.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;

use crate::config::Config;
use crate::looking::Sources;
use kernel::id::{Member, Origin, WorkloadId};
use kernel::machine::{Machine, Timestamp};
use purge::agreement::group::View;
use purge::agreement::roster::{Heartbeat, Hold, Reason, Roster, Stands, Trust, settings};
use purge::agreement::tally::{Tally, tally};
use purge::bounds::policy::{Agreement, Policy};
use purge::broker::{Broker, Effect, Event, Identity, NoAnswer, Seen, Trouble};
use purge::ports::{BEAT_TTL, Board, Cursor, Heard, LedgerContents, News, Posting};
use purge::records::record::Record;
use purge::rollouts::part::PartsSeen;

/// How long one board is listened to. 10,000 records of a member come in 20 answers of a few milliseconds each.
const BOARD_WITHIN: Duration = Duration::from_secs(15);

/// Answers of one board that are read: 100,000 records. Each has half a megabyte at most.
const PAGES_MAX: usize = 200;

/// Beats by which one board may be behind another: what is on the way, and one attempt again.
const BEATS_BEHIND: u64 = 3;

/// All answers count as received at this one moment.
const NOW: Timestamp = Timestamp::from_millis(0);

/// Why nothing is known of agreement without the ledger: the pin is in it.
pub(crate) const UNREAD: &str = "the ledger cannot be read, so it is not known who the members are";

/// Reads boards for commands. A member's name has no blank, so this is no member's name.
pub(crate) const READER: &str = "allclear command";

/// The group as it is configured, to listen to.
pub struct Neighbours {
    pub name: String,
    /// Our own name in it, or why that is not known.
    pub member: Result<Member, String>,
    /// A group is configured, or the ledger has other members all the same.
    pub is_group: bool,
    /// The members' names, where they are given.
    pub members: BTreeSet<Member>,
    /// Whether records are signed, or are not on purpose.
    pub trust: Trust,
    /// All boards, our own first, by a name that is no member's: so our own copies are read like those of others.
    pub boards: Vec<Arc<dyn Board>>,
}

impl Neighbours {
    pub(crate) fn new(
        config: &Config,
        member: Result<Member, String>,
        is_group: bool,
        boards: Vec<Arc<dyn Board>>,
    ) -> Self {
        Self {
            name: config.group.name.clone(),
            member,
            is_group,
            members: config.group.members.iter().cloned().map(Member).collect(),
            trust: config.group.trust(),
            boards,
        }
    }
}

pub struct Group {
    pub member: Member,
    /// The group as a running allclear would show it; `None` while alone.
    pub seen: Option<Seen>,
    /// The boards, also while alone.
    pub boards: Vec<purge::broker::BoardSeen>,
    /// What is wrong with the boards and the group.
    pub troubles: Vec<Trouble>,
    /// Copies of this cluster's own records, with the name of the board.
    pub own: BTreeMap<WorkloadId, Vec<OwnCopy>>,
    /// The beats of all members, our own running instance's too.
    pub beats: BTreeMap<Member, Heartbeat>,
    /// Workloads in which another member asks for our part.
    pub sought: BTreeSet<WorkloadId>,
    /// A hold that the broker cannot know: it saw one moment only.
    hold: Option<String>,
    /// Our ledger was read.
    ledger_read: bool,
    broker: Broker,
    agreement: Agreement,
}

/// A copy of one of our own records on a board.
#[derive(Clone, Debug)]
pub struct OwnCopy {
    /// The board, by its address.
    pub board: String,
    /// The ledger it is from.
    pub origin: Origin,
    pub said: Posting,
}

impl Group {
    /// How the members stand towards a workload, ours by this record; `None` while alone, and where it is not known who
    /// they are.
    pub fn tally(&mut self, workload: &WorkloadId, record: Option<&Record>) -> Option<Tally> {
        self.seen.as_ref().filter(|_| self.ledger_read)?;
        let view = self.view(workload, record);
        Some(tally(workload, &view, &self.member, &self.agreement))
    }

    /// The part of each member in a workload, ours by the record that [`Self::tally`] was asked with.
    pub fn parts(&self, workload: &WorkloadId) -> PartsSeen {
        self.broker.parts(NOW, workload)
    }

    /// What is known of a workload in all members, ours by this record.
    pub fn view(&mut self, workload: &WorkloadId, record: Option<&Record>) -> View {
        if let Some(record) = record {
            self.broker.step(NOW, Event::Published(workload.clone(), Box::new(record.clone())));
        }
        let view = self.broker.view(NOW, workload);
        View { hold: self.hold.clone().or(view.hold), ..view }
    }
}

/// What one board said.
struct Told {
    identity: Result<String, NoAnswer>,
    pages: Vec<News>,
    /// Why it takes no writes, as far as it says so.
    refuses: Option<String>,
    /// Why it could not be read to its end.
    broken: Option<NoAnswer>,
}

/// Listens to all boards. What cannot be reached is named in its place, and hides nothing else. `ledgered` is `None` where our
/// own ledger cannot be read; then nothing is said of agreement but that.
pub async fn listen(
    neighbours: &Neighbours,
    member: &Member,
    ledgered: Option<&LedgerContents>,
    policy: &Policy,
) -> Group {
    let Neighbours { boards, is_group, members, trust, .. } = neighbours;
    let origin = ledgered.map(|ledgered| ledgered.origin.clone()).unwrap_or_default();
    let roster = is_group.then(|| {
        let settings = settings(policy, trust.is_proof());
        let pin = ledgered.and_then(|ledgered| ledgered.pin.clone());
        Roster::new(member.clone(), origin.clone(), members.clone(), settings, pin)
    });
    let names: Vec<String> = boards.iter().map(|board| board.name().to_owned()).collect();
    let told = join_all(boards.iter().map(read)).await;
    let unwritten = unwritten(member, &names, &told);
    let mut heard = Hearing {
        broker: Broker::new(listener(member, &origin, *trust, policy), roster, names.clone()).listening(),
        effects: Vec::new(),
    };
    heard.take(Event::LedgerRead(Ok(ledgered.map(|ledgered| (origin.clone(), ledgered.records.clone())))));
    for (index, told) in told.iter().enumerate() {
        heard.take(Event::Identified(index, told.identity.clone()));
    }
    let mut beats = BTreeMap::new();
    let (goes_on, twins) = twins(member, &origin, &told);
    // All beats first: they say which ledger of a member counts.
    for (index, told) in told.iter().enumerate() {
        for page in &told.pages {
            beats.extend(page.beats.iter().map(|beat| (beat.member.clone(), beat.clone())));
            let is_heard = |beat: &&Heartbeat| !goes_on || beat.member != *member || beat.origin == origin;
            let beats = page.beats.iter().filter(is_heard).cloned().collect();
            heard.take(Event::Read(index, Ok(Box::new(News { beats, ..News::default() }))));
        }
    }
    let own = heard.take_all(member, told, &names);
    let Hearing { broker, effects } = heard;
    let wanted = |effect| if let Effect::Want(workload) = effect { Some(workload) } else { None };
    let sought = effects.into_iter().filter_map(wanted).collect();
    let (mut seen, mut boards, mut troubles) = (broker.seen(NOW), broker.boards_seen(NOW), broker.troubles(NOW));
    for (index, why) in unwritten {
        let shown = seen.iter_mut().filter_map(|seen| seen.boards.get_mut(index)).chain(boards.get_mut(index));
        shown.filter(|board| board.trouble.is_none()).for_each(|board| board.trouble = Some(why.clone()));
        troubles.push(Trouble::Board(why));
    }
    if goes_on && !twins.is_empty() {
        troubles.push(Trouble::Other(namesakes(member, &origin, &twins)));
    }
    let hold = ledgered.is_none().then(|| UNREAD.to_owned());
    if let (Some(seen), Some(hold)) = (&mut seen, &hold) {
        overrule(seen, &mut troubles, Hold::new(Reason::Members, hold));
        compare_nothing(seen, &mut troubles);
    }
    let (member, agreement) = (member.clone(), policy.group.clone());
    Group {
        member,
        seen,
        boards,
        troubles,
        own,
        beats,
        sought,
        hold,
        ledger_read: ledgered.is_some(),
        broker,
        agreement,
    }
}

/// What the boards say, where there are any.
///
/// # Errors
/// Why our own name is not known, so that they were not asked.
pub async fn heard(sources: &Sources, ledgered: Option<&LedgerContents>) -> Result<Option<Group>, String> {
    let Some(neighbours) = &sources.group else { return Ok(None) };
    let member = neighbours.member.as_ref().map_err(Clone::clone)?;
    Ok(Some(listen(neighbours, member, ledgered, &sources.policy).await))
}

/// Whether we leave beats ourselves, and the ledgers of others that do by our name. Whoever leaves beats does not give way to another
/// one of its name.
fn twins(member: &Member, origin: &Origin, told: &[Told]) -> (bool, BTreeSet<Origin>) {
    let beats = told.iter().flat_map(|told| &told.pages).flat_map(|page| &page.beats);
    let origins: BTreeSet<Origin> =
        beats.filter(|beat| beat.member == *member).map(|beat| beat.origin.clone()).collect();
    let goes_on = origins.contains(origin);
    (goes_on, origins.into_iter().filter(|other| other != origin).collect())
}

/// The identity of this reader. Fields that only other members read are empty: nothing is posted to them.
fn listener(member: &Member, origin: &Origin, trust: Trust, policy: &Policy) -> Identity {
    let mut stands = Stands::default();
    stands.follow(&policy.kinds);
    Identity {
        member: member.clone(),
        origin: origin.clone(),
        boot: String::new(),
        version: env!("CARGO_PKG_VERSION").to_owned(),
        stands,
        listen_only: false,
        trust,
    }
}

/// The boards that do not take what our running instance writes, and why: by their own word, or because they lack the beat that
/// it has left on others.
fn unwritten(member: &Member, names: &[String], told: &[Told]) -> Vec<(usize, String)> {
    let own = |told: &Told| {
        let beats = told.pages.iter().flat_map(|page| &page.beats).filter(|beat| beat.member == *member);
        beats.map(|beat| (beat.boot.clone(), beat.count)).max_by_key(|(_, count)| *count)
    };
    let newest = told.iter().filter_map(own).max_by_key(|(_, count)| *count);
    let why = |(told, name): (&Told, &String)| {
        if told.broken.is_some() {
            return None;
        }
        if let Some(why) = &told.refuses {
            return Some(format!("failed to write in Redis {name}: {why}"));
        }
        let (boot, count) = newest.as_ref()?;
        let lacks = match own(told) {
            None => true,
            Some((there, number)) => there == *boot && number.saturating_add(BEATS_BEHIND) < *count,
        };
        lacks.then(|| {
            format!(
                "failed to write in Redis {name}: {member}'s allclear leaves its beats elsewhere and not there; its log and \
                 allclear_board_failures_total say why"
            )
        })
    };
    told.iter().zip(names).map(why).enumerate().filter_map(|(index, why)| Some((index, why?))).collect()
}

/// Two allclears of one name, of which ours is at work. A ledger that was made anew leaves a beat of the former as well, for as long as
/// one is kept.
fn namesakes(member: &Member, origin: &Origin, others: &BTreeSet<Origin>) -> String {
    let others: Vec<&str> = others.iter().map(|other| other.0.as_str()).collect();
    format!(
        "another allclear reports by the name {member} (ledger {}, and ours is {origin}), unless our ledger was made anew less than \
         {} s ago: if this cluster runs both, give each its group.name; if they are two clusters, give one another group.member",
        others.join(" and "),
        BEAT_TTL.as_secs()
    )
}

/// Puts a hold in the place of the one that the broker came to.
fn overrule(seen: &mut Seen, troubles: &mut Vec<Trouble>, hold: Hold) {
    let before = seen.hold.replace(hold.words.clone());
    seen.holds.retain(|known| Some(&known.words) != before.as_ref());
    let before = before.map(Trouble::Hold);
    troubles.retain(|trouble| Some(trouble) != before.as_ref());
    troubles.push(Trouble::Hold(hold.words.clone()));
    seen.holds.insert(0, hold);
}

/// Leaves out what was compared with members that are not known.
fn compare_nothing(seen: &mut Seen, troubles: &mut Vec<Trouble>) {
    seen.config.clear();
    seen.holds.retain(|hold| hold.reason != Reason::Configuration);
    troubles.retain(|trouble| !matches!(trouble, Trouble::Difference { .. }));
    for member in &mut seen.members {
        member.differences.clear();
        member.cure = None;
    }
}

/// The broker, and what it would do; only what it would ask of us matters here.
struct Hearing {
    broker: Broker,
    effects: Vec<Effect>,
}

impl Hearing {
    fn take(&mut self, event: Event) {
        self.effects.extend(self.broker.step(NOW, event));
    }

    /// What the boards show of workloads. Returns the copies of our own.
    fn take_all(&mut self, member: &Member, told: Vec<Told>, names: &[String]) -> BTreeMap<WorkloadId, Vec<OwnCopy>> {
        let mut own: BTreeMap<WorkloadId, Vec<OwnCopy>> = BTreeMap::new();
        for ((index, told), board) in told.into_iter().enumerate().zip(names) {
            for page in told.pages {
                let of_ours = page.heard.iter().filter(|heard| heard.member == *member);
                for Heard { workload, origin, said, .. } in of_ours.cloned() {
                    let copies = own.entry(self.broker.local(&workload)).or_default();
                    copies.push(OwnCopy { board: board.clone(), origin, said });
                }
                self.take(Event::Read(index, Ok(Box::new(News { beats: Vec::new(), ..page }))));
            }
            if let Some(why) = told.broken {
                self.take(Event::Read(index, Err(why)));
            }
        }
        own
    }
}

async fn read(board: &Arc<dyn Board>) -> Told {
    let (mut pages, mut refuses) = (Vec::new(), None);
    let reading = async {
        let identity = board.identity().await.map_err(NoAnswer::from);
        if let Err(why) = identity {
            return (Err(why.clone()), Some(why));
        }
        refuses = board.refuses().await.ok().flatten();
        let mut cursor = Cursor::default();
        loop {
            match board.read(&cursor).await {
                Ok(page) => {
                    let more = page.more && page.cursor != cursor;
                    if more && pages.len() >= PAGES_MAX {
                        let much = NoAnswer::TooMuch { board: board.name().to_owned(), answers: PAGES_MAX };
                        return (identity, Some(much));
                    }
                    cursor = page.cursor.clone();
                    pages.push(page);
                    if !more {
                        return (identity, None);
                    }
                }
                Err(error) => return (identity, Some(error.into())),
            }
        }
    };
    let late = || NoAnswer::Late { board: board.name().to_owned(), within: BOARD_WITHIN };
    let (identity, broken) =
        tokio::time::timeout(BOARD_WITHIN, reading).await.unwrap_or_else(|_| (Err(late()), Some(late())));
    Told { identity, pages, refuses, broken }
}
