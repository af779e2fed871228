//! The verdicts. Each judgement is a function of what was read; what is not in it is *cannot be told*, never *held*.

use std::collections::BTreeMap;

use crate::facts::{Logs, Own, Place};
use crate::names::Name;
use crate::report::{Evidence, Judgement, Promise, Report, Verdict};
use crate::story::{End, Stories, Story, changes};
use crate::witness::{Invalidations, Objects};
use crate::{SILENCE_US, SKEW_US};

/// Evidence that a report lists for one promise, of each verdict; how much more there is, it says.
const LISTED_MAX: usize = 20;

/// What was found about one promise.
struct Finding {
    promise: Promise,
    looked_at: String,
    broken: Vec<Evidence>,
    missing: Vec<Evidence>,
}

impl Finding {
    const fn new(promise: Promise) -> Self {
        Self { promise, looked_at: String::new(), broken: Vec::new(), missing: Vec::new() }
    }

    fn judgement(self) -> Judgement {
        let Self { promise, looked_at, broken, missing } = self;
        let (verdict, mut evidence) = match (broken.is_empty(), missing.is_empty()) {
            (false, _) => (Verdict::Broken, broken),
            (true, false) => (Verdict::CannotBeTold, missing),
            (true, true) => (Verdict::Held, Vec::new()),
        };
        if evidence.len() > LISTED_MAX {
            let more = evidence.len().saturating_sub(LISTED_MAX);
            evidence.truncate(LISTED_MAX);
            evidence.push(Evidence { place: "…".to_owned(), words: format!("and {more} more") });
        }
        Judgement { promise, verdict, words: looked_at, evidence }
    }
}

/// What the logs were read into, and how their places are named.
struct Case<'a> {
    logs: &'a Logs,
    all: Stories,
}

impl Case<'_> {
    fn text(&self, name: Name) -> &str {
        self.logs.names.text(name)
    }

    fn at(&self, place: Place, words: String) -> Evidence {
        let member = self.logs.members.get(place.member).map_or("", |log| &log.name);
        Evidence { place: format!("{member}:{}", place.line), words }
    }

    fn workload(&self, story: &Story) -> &str {
        story.owns.first().map_or("", |own| self.text(own.1))
    }

    /// `shop/web 1.0 → 1.1`, as far as it is known.
    fn name(&self, rollout: Name, story: &Story) -> String {
        let change = story.change.map(|change| self.text(change)).filter(|change| !change.is_empty());
        match change {
            Some(change) => format!("{} ({change})", self.workload(story)),
            None => format!("{} (rollout {})", self.workload(story), self.text(rollout)),
        }
    }

    /// Whether a log was being written at this moment.
    fn covers(&self, member: usize, at_us: i64) -> bool {
        self.logs
            .members
            .get(member)
            .and_then(|log| log.span_us)
            .is_some_and(|(first, last)| (first..=last).contains(&at_us))
    }

    /// Whether every member of a rollout is seen to have voted for it.
    fn is_decided(&self, story: &Story) -> bool {
        let has_voted = |member: &Name| self.logs.logs_of(*member).iter().any(|log| story.votes.contains_key(log));
        !story.members.is_empty() && story.members.keys().all(has_voted)
    }

    fn end_of_log(&self, member: usize) -> i64 {
        self.logs.members.get(member).and_then(|log| log.span_us).map_or(0, |(_, last)| last)
    }
}

/// Judges what was read. The witnesses are those that the caller had; without them, what only they know is not looked at.
pub fn judge(logs: &Logs, objects: &[(usize, Objects)], invalidations: &Invalidations) -> Report {
    let case = Case { logs, all: Stories::of(logs) };
    let mut findings =
        [once(&case, invalidations), complete(&case), kept(&case, objects), apart(&case), told(&case), secret(&case)];
    unread(&case, &mut findings);
    for (place, promise) in &logs.admitted {
        let words = case.text(*promise).to_owned();
        let own = if words.starts_with("SAFE-1") { Promise::Once } else { Promise::Told };
        let evidence = case.at(*place, format!("allclear says so itself: {words}"));
        findings
            .iter_mut()
            .filter(|finding| finding.promise == own)
            .for_each(|finding| finding.broken.push(evidence.clone()));
    }
    Report { promises: findings.into_iter().map(Finding::judgement).collect(), changes: changes(logs, &case.all) }
}

/// Logs that say nothing can prove nothing.
fn unread(case: &Case<'_>, findings: &mut [Finding]) {
    let mut missing = Vec::new();
    for log in &case.logs.members {
        let words = if log.span_us.is_none() {
            "no line of this log is one of allclear's JSON lines (log.format = \"json\")"
        } else if log.is_mixed {
            "this log has the lines of more than one member; give each its own file"
        } else {
            continue;
        };
        missing.push(Evidence { place: log.name.clone(), words: words.to_owned() });
    }
    if case.logs.members.is_empty() {
        missing.push(Evidence { place: "-".to_owned(), words: "no log was given".to_owned() });
    }
    findings.iter_mut().for_each(|finding| finding.missing.extend(missing.iter().cloned()));
}

/// One invalidation for each rollout and distribution; further ones, as many as there is evidence for.
fn once(case: &Case<'_>, invalidations: &Invalidations) -> Finding {
    let mut finding = Finding::new(Promise::Once);
    let mut count = 0_usize;
    for (rollout, story) in &case.all.stories {
        for (distribution, ids) in &story.made {
            count = count.saturating_add(ids.len());
            // One that another rollout has made covers this one.
            let own = ids.keys().filter(|id| !case.all.is_of_another(*rollout, **id)).count();
            let allowed = story.repeated.get(distribution).map_or(1, |times| times.saturating_add(1));
            if own > allowed {
                let listed: Vec<&str> = ids.keys().map(|id| case.text(*id)).collect();
                let words = format!(
                    "{} was purged {} times in {}, with evidence for {} of them: {}",
                    case.name(*rollout, story),
                    own,
                    case.text(*distribution),
                    allowed,
                    listed.join(", ")
                );
                finding.broken.extend(ids.values().map(|place| case.at(*place, words.clone())));
            }
        }
        if let (Some(place), true) = (story.unsaid, story.made.is_empty() && !case.is_rehearsal(story)) {
            let words = format!("{}: the line does not say which invalidation it is", case.name(*rollout, story));
            finding.missing.push(case.at(place, words));
        }
    }
    let known = invalidations.beside(|id| case.logs.names.find(id).is_some());
    for (distribution, id, at_us) in known {
        if (0..case.logs.members.len()).all(|member| case.covers(member, at_us)) {
            let words = format!("{id} was made by allclear, and no log says for which rollout");
            finding.broken.push(Evidence { place: format!("CloudFront {distribution}"), words });
        }
    }
    finding.looked_at =
        format!("{count} invalidations of {} rollouts{}", case.all.stories.len(), invalidations.words());
    finding
}

impl Case<'_> {
    fn is_rehearsal(&self, story: &Story) -> bool {
        story.owns.iter().any(|own| self.logs.members.get(own.0).is_some_and(|log| log.is_dry_run))
    }
}

/// Every member has voted before the purge, and each had completed before its vote.
fn complete(case: &Case<'_>) -> Finding {
    let mut finding = Finding::new(Promise::Complete);
    let mut count = 0_usize;
    for (rollout, story) in &case.all.stories {
        let Some(purged) = story.purged else { continue };
        count = count.saturating_add(1);
        let name = case.name(*rollout, story);
        if story.members.is_empty() {
            let words = format!("{name} was purged, and no log has a vote for it, so its members are not known");
            finding.missing.push(case.at(purged, words));
        }
        for member in story.members.keys() {
            one_member(case, &mut finding, (&name, story, purged), *member);
        }
    }
    finding.looked_at = format!("{count} purges and the votes before them");
    finding
}

fn one_member(case: &Case<'_>, finding: &mut Finding, (name, story, purged): (&str, &Story, Place), member: Name) {
    let who = case.text(member);
    let logs = case.logs.logs_of(member);
    if logs.is_empty() {
        finding
            .missing
            .push(case.at(purged, format!("{name} was purged, and the log of its member {who} was not given")));
        return;
    }
    // A log that does not reach to the purge may have lost the line of the vote: a later life says it again, and too late.
    let covered = logs.iter().any(|log| case.covers(*log, purged.at_us));
    let votes = logs.iter().filter_map(|log| story.votes.get(log));
    match votes.min_by_key(|(_, vote)| vote.at_us) {
        Some((own, vote)) => {
            let skew = if vote.member == purged.member { 0 } else { SKEW_US };
            if vote.at_us <= purged.at_us.saturating_add(skew) {
                before_its_vote(case, finding, name, *own, *vote);
            } else if covered {
                finding.broken.push(case.at(purged, format!("{name} was purged before {who} voted for it")));
                finding.broken.push(case.at(*vote, format!("{who} voted for {name}")));
            } else {
                finding.missing.push(
                    case.at(*vote, format!("{who} says its vote for {name} again, and where it voted is in no log")),
                );
            }
        }
        // Two pods of one member: the log of one that stood by has no votes.
        None if covered && logs.iter().any(|log| case.all.voters.contains(log)) => {
            finding.broken.push(case.at(purged, format!("{name} was purged, and {who} never voted for it")));
        }
        None => {
            finding.missing.push(case.at(purged, format!("{name} was purged, and no log of {who} reaches to there")));
        }
    }
}

/// The rollout was complete, and had not failed, when its member voted for it.
fn before_its_vote(case: &Case<'_>, finding: &mut Finding, name: &str, own: Own, vote: Place) {
    let Some(part) = case.all.parts.get(&own) else { return };
    // A rollout whose start is in no log may have been complete before the log began.
    let (Some(started), completed) = (part.started, part.completed) else { return };
    if started.at_us <= vote.at_us && completed.is_none_or(|(_, at_us)| at_us > vote.at_us) {
        finding.broken.push(case.at(vote, format!("{name} was voted for before it was complete")));
        finding.broken.push(case.at(started, "it was started here".to_owned()));
    }
    for (end, place) in &part.ends {
        if *end == End::Failed && place.at_us < vote.at_us {
            finding.broken.push(case.at(*place, format!("{name} had failed when it was voted for")));
        }
    }
}

/// What was complete ends, or says why it waits; what a webhook owes is delivered or given up; what a witness saw change was seen.
fn kept(case: &Case<'_>, objects: &[(usize, Objects)]) -> Finding {
    let mut finding = Finding::new(Promise::Kept);
    let mut completed = 0_usize;
    let says_ends = !case.logs.ended.is_empty();
    for (own, part) in &case.all.parts {
        let Some((place, _)) = part.completed else { continue };
        completed = completed.saturating_add(1);
        let lasting = part.ends.iter().any(|(end, _)| *end != End::Impossible);
        if case.logs.ended.contains_key(own) || lasting {
            continue;
        }
        let story = case.all.voted.get(own).and_then(|rollouts| case.all.stories.get(rollouts.last()?));
        let last = story.and_then(|story| story.last).into_iter().chain(part.last).max_by_key(|place| place.at_us);
        let last = last.unwrap_or(place);
        let which = format!("rollout {} of {}", own.2, case.text(own.1));
        let is_silent = case.end_of_log(own.0).saturating_sub(last.at_us) > SILENCE_US;
        // Who waits for others waits for as long as they do, and says so once.
        if is_silent && says_ends && story.is_some_and(|story| case.is_decided(story)) {
            let words = format!("{which} was complete and decided, and nothing more is said of it until the log ends");
            finding.broken.push(case.at(last, words));
        } else {
            let words = format!("{which} was complete, and no line of this log says how it ended");
            finding.missing.push(case.at(place, words));
        }
    }
    let mut delivered = 0_usize;
    for (id, delivery) in &case.logs.deliveries {
        match case.text(delivery.last) {
            "webhook delivered" => delivered = delivered.saturating_add(1),
            "webhook given up" => {}
            _ => {
                let (hook, workload) = (case.text(delivery.hook), case.text(delivery.workload));
                let words = format!("{} to {hook} about {workload} is tried again when the log ends", case.text(*id));
                finding.missing.push(case.at(delivery.first, words));
            }
        }
    }
    let mut changes = 0_usize;
    for (member, objects) in objects {
        changes = changes.saturating_add(unseen(case, &mut finding, *member, objects));
    }
    finding.looked_at = format!("{completed} rollouts that were complete, {delivered} webhooks delivered");
    if !objects.is_empty() {
        finding.looked_at.push_str(&format!(", {changes} changes that the cluster's objects show"));
    }
    finding
}

/// How many changes a cluster's own objects show, of workloads that its log follows. Those that the log does not have are listed.
fn unseen(case: &Case<'_>, finding: &mut Finding, member: usize, objects: &Objects) -> usize {
    let mut seen: BTreeMap<&str, Vec<i64>> = BTreeMap::new();
    for (own, part) in &case.all.parts {
        if own.0 == member {
            seen.entry(case.text(own.1)).or_default().extend(part.started.map(|place| place.at_us));
        }
    }
    let mut count = 0_usize;
    for change in objects.changes() {
        let reaches = case.covers(member, change.at_us)
            && case.covers(member, change.at_us.saturating_add(Objects::SEEN_WITHIN_US));
        let Some(starts) = seen.get(change.workload.as_str()).filter(|_| reaches) else { continue };
        count = count.saturating_add(1);
        let window = change.at_us.saturating_sub(SKEW_US)..=change.at_us.saturating_add(Objects::SEEN_WITHIN_US);
        if !starts.iter().any(|at_us| window.contains(at_us)) {
            let words = format!(
                "{} changed its images here, and the log has no rollout of it: it was lost, or switched off, or the container is not counted",
                change.workload
            );
            finding.missing.push(Evidence { place: change.object.clone(), words });
        }
    }
    count
}

/// While something was in trouble, what began beside it ended.
fn apart(case: &Case<'_>) -> Finding {
    const TROUBLE: [&str; 6] =
        ["rollout.stuck", "group.stalled", "group.in_doubt", "purge.owed", "purge.stalled", "purge.failed"];
    let mut finding = Finding::new(Promise::Apart);
    let mut troubles = 0_usize;
    let mut beside = 0_usize;
    for told in case.logs.told.iter().filter(|told| TROUBLE.contains(&case.text(told.kind))) {
        troubles = troubles.saturating_add(1);
        let window = told.place.at_us..told.place.at_us.saturating_add(SILENCE_US);
        let is_in = |place: &Place| window.contains(&place.at_us);
        // What began meanwhile could be held up; where nothing did, there was nothing to hold up.
        let begun = case.all.parts.iter().filter(|(own, part)| {
            own.0 == told.own.0 && own.1 != told.own.1 && part.started.as_ref().is_some_and(is_in)
        });
        let mut begun = begun.peekable();
        let is_alone = begun.peek().is_none();
        let has_ended = begun.any(|(own, part)| {
            case.logs.ended.contains_key(own) || part.ends.iter().any(|(end, _)| *end != End::Impossible)
        });
        beside = beside.saturating_add(usize::from(has_ended));
        if !is_alone && !has_ended {
            let words = format!(
                "{} was in trouble, and no other rollout that began meanwhile has ended",
                case.text(told.own.1)
            );
            finding.missing.push(case.at(told.place, words));
        }
    }
    finding.looked_at = match troubles {
        0 => "nothing was in trouble, so nothing could be held up by it".to_owned(),
        _ => format!("{troubles} troubles, beside {beside} of which others began and ended"),
    };
    finding
}

/// Each rollout ends in one way, for all members that say so.
fn told(case: &Case<'_>) -> Finding {
    let mut finding = Finding::new(Promise::Told);
    let mut ended = 0_usize;
    for (rollout, story) in &case.all.stories {
        // What was owed may be given up by one member while another still makes it.
        let lasting =
            |(end, ..): &&(End, Place, Name)| *end != End::Impossible && !(story.owed && *end == End::Skipped);
        let Some(first) = story.ends.iter().find(lasting) else { continue };
        ended = ended.saturating_add(1);
        let Some(other) = story.ends.iter().filter(lasting).find(|(end, ..)| *end != first.0) else { continue };
        for (end, place, message) in [first, other] {
            let words = format!("{} ended as {end:?}: {}", case.name(*rollout, story), case.text(*message));
            finding.broken.push(case.at(*place, words));
        }
    }
    finding.looked_at = format!("{ended} ends of {} rollouts", case.all.stories.len());
    finding
}

fn secret(case: &Case<'_>) -> Finding {
    let mut finding = Finding::new(Promise::Secret);
    let lines: u64 = case.logs.members.iter().map(|log| log.lines).sum();
    finding.looked_at = format!("{lines} lines");
    finding.broken = case.logs.leaks.iter().map(|(place, what)| case.at(*place, format!("it shows {what}"))).collect();
    finding
}
