//! `allclear group show`, `allclear group forget MEMBER`, `allclear group add MEMBER` and, in its own file, `allclear group leave`.
//!
//! It shows the beats on the boards now and the members pinned in the ledger. Forgetting is a write to the pin
//! of this cluster's ledger, by compare-and-set; the same is to be done in each remaining member (decision 5).

pub(crate) mod leave;

use std::collections::BTreeSet;
use std::fmt;

use futures_util::future::join_all;
use serde::{Serialize, Serializer};

use crate::cli::answer::{EXIT_FAILED, Outcome, Output, answer, refused};
use crate::cli::consent::Consent;
use crate::looking::Neighbours;
use crate::looking::listen::{Group, listen};
use crate::looking::page::{Page, count};
use crate::looking::{Section, Sources, group_lines, peek};
use kernel::id::{Member, WorkloadId};
use kernel::text::visible;
use purge::agreement::group::{Fate, fate};
use purge::agreement::roster::{Hold, Pin, Trust, listed};
use purge::broker::{BoardSeen, MemberSeen, Trouble};
use purge::ports::LedgerContents;
use purge::records::record::Vote;

/// Everything about the group.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Shown {
    pub group: String,
    pub member: String,
    /// The members as the ledger has them; `None` before they are agreed on.
    pub pinned: Section<Option<BTreeSet<Member>>>,
    /// Why nothing is agreed on; `None` when nothing is in the way.
    pub hold: Option<String>,
    /// All that holds the group up, or a part of it.
    pub holds: Vec<Hold>,
    pub keyed: bool,
    /// They are not, and the configuration says that this is meant.
    pub unsigned: bool,
    /// The hash of our configuration, as far as it must be the same in all members.
    pub config: String,
    pub members: Vec<MemberSeen>,
    pub boards: Vec<BoardSeen>,
    #[serde(serialize_with = "in_words")]
    pub troubles: Vec<Trouble>,
}

/// Shows the group. Exit codes: 0 shown, 1 there is none, or our own name is not known.
pub async fn show(sources: &Sources, output: Output) -> Outcome {
    let (neighbours, member) = match grouped(sources) {
        Ok(grouped) => grouped,
        Err(why) => return refused(&why),
    };
    let pinned = peek(sources).await;
    let heard = listen(neighbours, member, pinned.known(), &sources.policy).await;
    let shown = shown(neighbours, heard, &pinned);
    let code = if pinned.known().is_some() { 0 } else { EXIT_FAILED };
    answer(&shown, output, code)
}

fn shown(neighbours: &Neighbours, heard: Group, ledger: &Section<LedgerContents>) -> Shown {
    let seen = heard.seen.unwrap_or_default();
    Shown {
        group: neighbours.name.clone(),
        member: heard.member.to_string(),
        pinned: match ledger {
            Section::Known(ledgered) => Section::Known(ledgered.pin.as_ref().map(|pin| pin.members.clone())),
            Section::Missing { missing } => Section::missing(missing),
        },
        hold: seen.hold,
        holds: seen.holds,
        keyed: neighbours.trust.is_proof(),
        unsigned: neighbours.trust == Trust::UnsignedOnPurpose,
        config: seen.config,
        members: seen.members,
        boards: seen.boards,
        troubles: heard.troubles,
    }
}

/// Forgets a member, if the person who asks agrees. Exit codes: 0 forgotten, or nothing to do; 1 not done.
pub async fn forget(sources: &Sources, name: &str, consent: Consent) -> Outcome {
    let (neighbours, own) = match grouped(sources) {
        Ok(grouped) => grouped,
        Err(why) => return refused(&why),
    };
    let ledgered = match peek(sources).await {
        Section::Known(ledgered) => ledgered,
        Section::Missing { missing } => return refused(&missing),
    };
    let member = Member(name.to_owned());
    let Some(pin) = ledgered.pin.clone() else {
        return refused(
            "the members are not agreed on yet, so there is none to forget; allclear group show says who is waited for",
        );
    };
    if !pin.members.contains(&member) {
        return refused(&format!("{} is not a member; the members are {}", visible(name), listed(&pin.members)));
    }
    if member == *own {
        return refused(&format!(
            "{name} is this cluster itself; run this in the clusters that remain, and take their Redis out of this one's \
             group.remotes"
        ));
    }
    let next = pin.without(&BTreeSet::from([member.clone()]));
    let heard = listen(neighbours, own, Some(&ledgered), &sources.policy).await;
    let named = neighbours.members.contains(&member);
    // A member that agrees with others without it has forgotten it already.
    let done = |other: &Member| {
        heard.beats.get(other).is_some_and(|beat| !beat.members.is_empty() && !beat.members.contains(&member))
    };
    let rest: BTreeSet<Member> = next.members.iter().filter(|other| *other != own && !done(other)).cloned().collect();
    if let Err(left) = consent.ask(&plan(sources, (&pin, &next), (&member, named), heard, &ledgered)) {
        return left;
    }
    match sources.ledger.store_pin(&next, Some(&pin)).await {
        Ok(true) => {
            let elsewhere = if rest.is_empty() {
                String::new()
            } else {
                format!(
                    "now run it in {} too, where that is not done yet: as far as they have reported, up to 30 s ago, they count \
                     {name}, and wait for it\n",
                    listed(&rest)
                )
            };
            let named = if named { named_too(&member) + "\n" } else { String::new() };
            let left = clean(neighbours, &member).await;
            Outcome { out: format!("{name} is forgotten here\n{elsewhere}{named}{left}"), err: String::new(), code: 0 }
        }
        Ok(false) => refused(
            "nothing was changed: the members in the ledger changed at the same moment; look again with allclear group show",
        ),
        Err(error) => refused(&error.to_string()),
    }
}

/// Removes what a forgotten member has left on the boards. Says where that could not be done: it is only in the way of the eye.
async fn clean(neighbours: &Neighbours, member: &Member) -> String {
    let cleaning =
        neighbours.boards.iter().map(|board| async { (board.name().to_owned(), board.forget(member).await) });
    let failed = join_all(cleaning).await.into_iter().filter_map(|(name, cleaned)| Some((name, cleaned.err()?)));
    failed.map(|(name, error)| format!("what it has left on Redis {name} is still there: {error}\n")).collect()
}

/// Adds a member again that was forgotten. Exit codes: 0 added, or nothing to do; 1 not done.
pub async fn add(sources: &Sources, name: &str) -> Outcome {
    if let Err(why) = grouped(sources) {
        return refused(&why);
    }
    let ledgered = match peek(sources).await {
        Section::Known(ledgered) => ledgered,
        Section::Missing { missing } => return refused(&missing),
    };
    let member = Member(name.to_owned());
    let Some(pin) = ledgered.pin.filter(|pin| pin.forgotten.contains(&member)) else {
        return refused(&format!(
            "{} was not forgotten here; a cluster that never was a member is added by its Redis in group.remotes and, where \
             the members are named, its name in group.members",
            visible(name)
        ));
    };
    let forgotten = pin.forgotten.iter().filter(|other| **other != member).cloned().collect();
    let next = Pin { forgotten, ..pin.clone() };
    match sources.ledger.store_pin(&next, Some(&pin)).await {
        Ok(true) => Outcome {
            out: format!(
                "{name} is not forgotten here any more; it is a member, and waited for, as soon as it reports, or is named in \
                 group.members\nnow run it in the other members too\n"
            ),
            err: String::new(),
            code: 0,
        },
        Ok(false) => refused(
            "nothing was changed: the members in the ledger changed at the same moment; look again with allclear group show",
        ),
        Err(error) => refused(&error.to_string()),
    }
}

/// What would be written, and what follows from it; `named` says that `group.members` has the member.
fn plan(
    sources: &Sources,
    (pin, next): (&Pin, &Pin),
    (member, named): (&Member, bool),
    heard: Group,
    ledgered: &LedgerContents,
) -> String {
    let mut lines = vec![
        format!("In the ledger in {}, the entry of the members becomes", sources.ledger_place),
        format!("  {}", listed(&next.members)),
        format!("instead of {}.", listed(&pin.members)),
    ];
    let beat = heard.beats.get(member);
    lines.push(match beat {
        Some(_) => format!(
            "WARNING: {member} was heard from less than 30 s ago. A member that lives and is forgotten goes on voting, and waits \
             for votes it does not get. First stop it, and take its Redis out of redis.url and group.remotes of all others."
        ),
        None => format!("{member} has not been heard from for 30 s at least."),
    });
    lines.push(
        "The configuration hash changes with the members: nothing is agreed on before every remaining member has forgotten it."
            .to_owned(),
    );
    let open = open_votes(heard, ledgered, &BTreeSet::from([member.clone()]));
    if open.is_empty() {
        lines.push(format!("No open vote waits for {member}."));
    } else {
        lines.push(format!(
            "{} {member} and is closed without a purge:",
            count(open.len(), "open vote contains", "open votes contain")
        ));
        lines.extend(open.into_iter().map(|(workload, what)| format!("  {}: {what}", workload.display_name())));
        lines.push(
            "Complete versions are then agreed on among those that remain, and purged by a vote of their own."
                .to_owned(),
        );
    }
    lines.push(format!("{member}'s Redis may stay in the configuration; then it is noticed if {member} comes back."));
    if named {
        lines.push(named_too(member));
    }
    lines.join("\n") + "\n"
}

/// What is to be done as well where the members are given by name.
fn named_too(member: &Member) -> String {
    format!(
        "group.members names {member}: if you take its Redis out of the configuration, take it out of group.members too, in \
         every remaining member; more members than servers are refused."
    )
}

/// The open votes with any of these members in them, and how each stands.
fn open_votes(mut heard: Group, ledgered: &LedgerContents, left: &BTreeSet<Member>) -> Vec<(WorkloadId, String)> {
    let mut open = Vec::new();
    for (workload, record) in &ledgered.records {
        let contains = |vote: &&Vote| vote.vector.0.keys().any(|member| left.contains(member));
        for vote in record.votes.iter().filter(|vote| vote.closed.is_none()).filter(contains) {
            let view = heard.view(workload, Some(record));
            let what = match fate(&view, &vote.vector) {
                Fate::Open(missing) => format!("waits for the votes of {}", listed(&missing)),
                Fate::Decided(_) => {
                    "is decided; a purge that a remaining cluster has on record is followed to its end".to_owned()
                }
                Fate::Dead(..) | Fate::Mixed => "has ended".to_owned(),
            };
            open.push((workload.clone(), format!("rollout {}: {what}", vote.seq)));
        }
    }
    open
}

/// The group and our name in it, or why there is none.
pub(crate) fn grouped(sources: &Sources) -> Result<(&Neighbours, &Member), String> {
    let Some(neighbours) = sources.group.as_ref().filter(|neighbours| neighbours.is_group) else {
        return Err("this configuration names no group: set group.remotes (REMOTE_REDIS_HOSTS) and redis.url (REDIS_HOST), or give \
                    the configuration the controller runs with by --config"
            .to_owned());
    };
    match &neighbours.member {
        Ok(member) => Ok((neighbours, member)),
        Err(why) => Err(why.clone()),
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { group, member, pinned, hold: _, holds, keyed, unsigned, config, members, boards, troubles } = self;
        let mut page = Page { f };
        page.title(&format!("group {group}, seen from member {member}"))?;
        let held = holds.iter().map(|hold| format!("nothing is agreed on: {}", hold.words));
        page.part("State", if holds.is_empty() { vec!["agreed".to_owned()] } else { held.collect() })?;
        page.section("Pinned", pinned, |pinned| {
            vec![pinned.as_ref().map_or_else(|| "none yet: the members are still being learnt".to_owned(), listed)]
        })?;
        page.part(
            "Records",
            [match (keyed, unsigned) {
                (true, _) => "signed with group.key_file",
                (false, true) => "not signed, on purpose (group.unsigned)",
                (false, false) => {
                    "not signed: anyone who can write to a Redis of the group can cause a purge, or prevent one"
                }
            }
            .to_owned()],
        )?;
        page.part("Configuration", Some(config.clone()).filter(|config| !config.is_empty()))?;
        let pin = pinned.known().is_some_and(Option::is_some);
        page.part("Members", members.iter().map(|member| member_line(member, pin)))?;
        page.part("Redis", boards.iter().map(board_line))?;
        page.part("Troubles", troubles.iter().filter(|trouble| !self.shows(trouble)).map(ToString::to_string))
    }
}

impl Shown {
    /// Whether a trouble is shown beside what it is about.
    fn shows(&self, trouble: &Trouble) -> bool {
        match trouble {
            Trouble::Board(why) => self.boards.iter().any(|board| board.trouble.as_ref() == Some(why)),
            Trouble::Hold(words) => self.holds.iter().any(|hold| hold.words == *words),
            Trouble::Difference { .. } => true,
            Trouble::Other(_) => false,
        }
    }
}

fn in_words<S: Serializer>(troubles: &[Trouble], to: S) -> Result<S::Ok, S::Error> {
    to.collect_seq(troubles.iter().map(ToString::to_string))
}

fn member_line(member: &MemberSeen, pinned: bool) -> String {
    let MemberSeen { name, is_self, agreed, heard_s, version, differences, unfollowed, disbelieved, place, .. } =
        member;
    let heard = match (is_self, disbelieved, heard_s, version) {
        (true, ..) => "this member".to_owned(),
        (false, Some(why), ..) => format!("heard from, and not believed: {why}"),
        (false, None, Some(_), Some(version)) => format!("heard from within 30 s, allclear {version}"),
        (false, None, ..) => "not heard from: it is down, or none of its Redis servers is reached".to_owned(),
    };
    let heard = match place {
        Some(place) if !is_self => format!("{heard}, its own Redis is {place}"),
        Some(_) | None => heard,
    };
    let agreed = if *agreed || !pinned { "" } else { "; not among the members that are pinned" };
    let differs = if differences.is_empty() { String::new() } else { format!("; differs: {}", differences.join("; ")) };
    let unfollowed: String = unfollowed.iter().map(|why| format!("; {why}")).collect();
    format!("{name}: {heard}{agreed}{differs}{unfollowed}")
}

fn board_line(board: &BoardSeen) -> String {
    let BoardSeen { name, trouble, same_as, rejected, identity, .. } = board;
    let state = match (same_as, trouble) {
        (Some(other), _) => format!("the same server as {other}"),
        (None, Some(why)) => group_lines::board_trouble(name, why).to_owned(),
        (None, None) => "well".to_owned(),
    };
    let who = identity.as_ref().map_or_else(String::new, |identity| format!("; server {identity}"));
    let rejected = if *rejected > 0 {
        format!("; {} not believed", count(usize::try_from(*rejected).unwrap_or(usize::MAX), "copy was", "copies were"))
    } else {
        String::new()
    };
    format!("{name}: {state}{rejected}{who}")
}
